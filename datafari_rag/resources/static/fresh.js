// @ts-check
/** A page that the browser kept and shows again is asked for again: its reader may have signed out meanwhile. */
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
