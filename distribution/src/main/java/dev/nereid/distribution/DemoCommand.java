package dev.nereid.distribution;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** The command {@code nereid demo}: serves the bundled models and asks one of them. Confined to its thread. */
final class DemoCommand implements Command {
    private static final String IMAGE = "digit_7_0.png";

    private final Surroundings surroundings;
    private final ServerFlags server = new ServerFlags();
    private final EndpointFlags endpoints = new EndpointFlags();
    private final LogFlags log = new LogFlags();
    private Duration training = Duration.ZERO;
    private boolean exit;

    DemoCommand(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    @Override
    public String name() {
        return "demo";
    }

    @Override
    public String description() {
        return "Serves the bundled models, shows a real picture to a real network, and goes on serving.";
    }

    @Override
    public String synopsis() {
        return "nereid demo [--exit] [FLAG]...";
    }

    @Override
    public void declare(Flags flags) {
        flags.add(
                Flag.toggle("--exit", "Ends after the answers.", () -> exit = true),
                Flag.of(
                        "--train",
                        FlagValue.SECONDS,
                        "After the answers, loads the server with requests for so long, and ends. nereid-aot uses it, with the"
                                + " model and the plugin in the directory training. Default: 0, not at all.",
                        value -> training = value));
        server.declare(flags);
        endpoints.declare(flags);
        log.declare(flags);
    }

    @Override
    public int run() throws StartFailure, InterruptedException, IOException {
        log.apply(surroundings.logLevels());
        Path examples = surroundings.paths().home().resolve("examples");
        server.repositories.add(examples.resolve("models"));
        RunningServer running = RunningServer.start(server, endpoints, surroundings);
        surroundings.console().out().println(running.report().text(CurlExample.Values.COUNTED));
        try {
            ask(running.endpoints(), examples);
            if (training.isPositive()) {
                surroundings.console().out().println("trained: " + TrainingLoad.run(running.endpoints(), training));
            }
        } catch (IOException e) {
            running.stop();
            throw new StartFailure("no answer: " + e.getMessage(), e);
        }
        if (!exit && training.isZero()) {
            surroundings.console().out().println(ServeCommand.SERVING);
            surroundings.stop().await();
        }
        return running.stop();
    }

    private void ask(Endpoints open, Path examples) throws IOException, InterruptedException {
        DigitImage image = DigitImage.read(examples.resolve("images").resolve(IMAGE));
        DigitLabels labels = new DigitLabels(Files.readAllLines(examples.resolve("models/digits/labels.txt")));
        if (open.localHttp().isPresent()) {
            String address = open.localHttp().get();
            tell(image, "HTTP", labels.best(DigitClients.overHttp(address, image)));
        }
        if (open.grpc().isPresent()) {
            String target = open.grpc().get().local().authority();
            tell(image, "gRPC", labels.best(DigitClients.overGrpc(target, image)));
        }
    }

    private void tell(DigitImage image, String protocol, String answer) {
        surroundings.console().out().println(image.name() + " over " + protocol + ": " + answer);
    }
}
