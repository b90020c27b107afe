package dev.nereid.distribution.process;

import java.io.PrintStream;

/**
 * The console of a command. Immutable.
 *
 * @param out the stream of results
 * @param err the stream of errors
 * @param isTerminal whether a person reads them
 */
public record ConsoleStreams(PrintStream out, PrintStream err, boolean isTerminal) {}
