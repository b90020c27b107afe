package dev.nereid.distribution.process;

import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The parent of this process, and how it starts children of the same program. Immutable.
 *
 * @param parent the lines of the parent process, if that waits for this one; empty for a process that a user started
 * @param command returns the command line of a child with the JVM, the options and the arguments of this process; empty
 *     if a child would disturb this process
 */
public record ProcessTree(Optional<ParentPipe> parent, Supplier<List<String>> command) {
    /** A process without a parent that starts no children. */
    public static final ProcessTree ALONE = new ProcessTree(Optional.empty(), List::of);
}
