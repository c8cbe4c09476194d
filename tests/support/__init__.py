"""What tests of several folders share: one server, one service, one clock, and the sockets below them."""
