package dev.nereid.distribution;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The command {@code nereid serve}: serves model repositories until it is told to stop. Confined to its thread. */
@Command(
        name = "serve",
        sortOptions = false,
        customSynopsis = "nereid serve --model-repository=DIR [FLAG]...",
        description = "Serves the models of a repository until it is told to stop.",
        footer = {
            "",
            "BOOL is true, on, 1, false, off or 0. Every flag but the switches can also be set by a variable of the"
                    + " environment: NEREID_HTTP_PORT for --http-port."
        })
final class ServeCommand implements Callable<Integer> {
    /** The last line of a start: from here on requests are answered. */
    static final String SERVING = "Serving until Ctrl-C.";

    private final Surroundings surroundings;

    @Mixin
    private final ServerFlags server = new ServerFlags();

    @Mixin
    private final EndpointFlags endpoints = new EndpointFlags();

    @Mixin
    private final LogFlags log = new LogFlags();

    @Option(names = "--help", usageHelp = true, description = "Prints this text and ends.")
    private boolean help;

    ServeCommand(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    @Override
    public Integer call() throws StartFailure, InterruptedException {
        log.apply(surroundings.logLevels());
        RunningServer running = RunningServer.start(server, endpoints, surroundings);
        surroundings.out().println(running.report().text(CurlExample.Values.ZEROS));
        surroundings.out().println(SERVING);
        surroundings.stop().await();
        return running.stop();
    }
}
