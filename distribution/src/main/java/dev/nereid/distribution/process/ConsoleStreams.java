package dev.nereid.distribution.process;

import java.io.PrintStream;

/**
 * The console of a command. Immutable.
 *
 * @param out the stream of results
 * @param err the stream of errors
 */
public record ConsoleStreams(PrintStream out, PrintStream err) {}
