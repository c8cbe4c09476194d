"""No Python beside this line: copies of conf, the demo corpus, Solr's pom and launcher, page templates."""
