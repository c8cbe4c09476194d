"""No Python beside this line: the contract's rows, question sets, Solr's pom, launcher and schemas."""
