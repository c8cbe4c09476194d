"""
What measures and tries the service, beside it: evaluation, conformance kit, a stub model, a real Solr for trials.

The service never imports it. Its commands join `datafari-rag` through the entry point `datafari_rag.commands`.
"""

COMMANDS = {
    "eval": ("datafari_rag_trials.evaluation.command:evaluate", "Measure answers to your own questions."),
    "conformance": (
        "datafari_rag_trials.conformance.command:conformance",
        "Check a running service against its contract.",
    ),
    "model": ("datafari_rag_trials.models.command:model", "Pack small embedding models for measuring."),
    "solr": ("datafari_rag_trials.solr.command:solr", "Start and stop a real Solr for testing."),
    "stub-llm": (
        "datafari_rag_trials.stub_model.command:stub_llm",
        "A model server for tests: the name of the model sets its behaviour.",
    ),
}
"""Name → where the command is, and its line in the list."""
