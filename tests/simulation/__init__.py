"""
The service in a world made of one number: every order of events is drawn from the seed, and can be had again.

Clock, network, Solr, authority, models, disk, readers and the settings file are simulated; all that is between them is
the production code, from the WSGI application down to the bytes of HTTP replies.
"""
