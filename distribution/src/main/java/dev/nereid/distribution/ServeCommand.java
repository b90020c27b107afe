package dev.nereid.distribution;

/** The command {@code nereid serve}: serves model repositories until it is told to stop. Confined to its thread. */
final class ServeCommand implements Command {
    /** The last line of a start: from here on requests are answered. */
    static final String SERVING = "Serving until Ctrl-C.";

    private final Surroundings surroundings;
    private final ServerFlags server = new ServerFlags();
    private final EndpointFlags endpoints = new EndpointFlags();
    private final LogFlags log = new LogFlags();

    ServeCommand(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    @Override
    public String name() {
        return "serve";
    }

    @Override
    public String description() {
        return "Serves the models of a repository until it is told to stop.";
    }

    @Override
    public String synopsis() {
        return "nereid serve --model-repository=DIR [FLAG]...";
    }

    @Override
    public void declare(Flags flags) {
        server.declare(flags);
        endpoints.declare(flags);
        log.declare(flags);
    }

    @Override
    public int run() throws StartFailure, InterruptedException {
        log.apply(surroundings.logLevels());
        RunningServer running = RunningServer.start(server, endpoints, surroundings);
        surroundings.console().out().println(running.report().text(CurlExample.Values.ZEROS));
        surroundings.console().out().println(SERVING);
        surroundings.stop().await();
        return running.stop();
    }
}
