package dev.nereid.distribution;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The command {@code nereid} itself: version and help. Confined to the thread that runs it. */
@Command(name = "nereid", description = "Serves machine-learning models over HTTP and gRPC.")
final class NereidCommand implements Callable<Integer> {
    private final Surroundings surroundings;

    @Spec
    @SuppressWarnings("NullAway.Init") // set by the command line reader
    private CommandSpec spec;

    @Option(names = "--version", description = "Prints the version and ends.")
    private boolean version;

    @Option(names = "--help", usageHelp = true, description = "Prints this text and ends.")
    private boolean help;

    NereidCommand(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    @Override
    public Integer call() {
        if (version) {
            surroundings.out().println("nereid " + surroundings.version());
            return ExitStatus.SUCCESS;
        }
        surroundings.err().println("nereid: no command (expected: serve or demo); see nereid --help");
        return ExitStatus.USAGE;
    }
}
