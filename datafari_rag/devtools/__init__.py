"""Programs for trials and tests: stub models, a Solr from Maven artifacts. `serve` never imports them."""
