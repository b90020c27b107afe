/**
 * A server in memory for unit tests of models. {@link dev.nereid.testkit.server.LocalServer} loads classes under test
 * and configurations as texts; queues, batchers, sequences and ensembles are the same as in a server.
 */
@NullMarked
package dev.nereid.testkit.server;

import org.jspecify.annotations.NullMarked;
