package dev.nereid.distribution.process;

import java.io.PrintStream;

/**
 * The console of a command. Immutable.
 *
 * @param out where results go
 * @param err where errors go
 */
public record ConsoleStreams(PrintStream out, PrintStream err) {}
