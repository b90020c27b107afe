package dev.nereid.distribution;

import java.io.PrintStream;

/**
 * The console of a command. Immutable.
 *
 * @param out where results go
 * @param err where errors go
 */
record ConsoleStreams(PrintStream out, PrintStream err) {}
