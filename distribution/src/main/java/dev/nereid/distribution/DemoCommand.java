package dev.nereid.distribution;

import dev.nereid.distribution.aot.AotTrainingRequests;
import dev.nereid.distribution.demo.DigitClients;
import dev.nereid.distribution.demo.DigitImage;
import dev.nereid.distribution.demo.DigitLabels;
import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.Flag;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.LogFlags;
import dev.nereid.distribution.flags.ServerFlags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.CurlExample;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** The command {@code nereid demo}: serves the bundled models and runs one inference. Confined to its thread. */
final class DemoCommand implements Command {
    private static final String IMAGE = "digit_7_0.png";

    private final CommandContext context;
    private final ServerFlags server = new ServerFlags();
    private final EndpointFlags endpoints = new EndpointFlags();
    private final LogFlags log = new LogFlags();
    private Duration training = Duration.ZERO;
    private boolean exit;

    DemoCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public String name() {
        return "demo";
    }

    @Override
    public String description() {
        return "Serves the bundled models, runs one inference on an image, and continues to serve.";
    }

    @Override
    public String synopsis() {
        return "nereid demo [--exit] [FLAG]...";
    }

    @Override
    public String exitCodes() {
        return Command.SERVER_EXIT_CODES;
    }

    @Override
    public boolean isInterruptible() {
        return false;
    }

    @Override
    public void declare(Flags flags) {
        flags.add(
                Flag.toggle("--exit", "Exits after the inference.", () -> exit = true),
                Flag.of(
                        "--train",
                        FlagValue.SECONDS,
                        "After the inference, loads the server with requests for so many seconds, and exits."
                                + " nereid-aot uses it, with the model and the plugin in the directory training."
                                + " Default: 0, no load.",
                        value -> training = value));
        server.declare(flags);
        endpoints.declare(flags);
        log.declare(flags);
    }

    @Override
    public int run() throws StartException, InterruptedException, IOException {
        log.apply(context.log());
        Path examples = context.paths().home().resolve("examples");
        server.repositories.add(examples.resolve("models"));
        RunningServer running = RunningServer.start(server, endpoints, context);
        context.console().out().println(running.report().text(CurlExample.Values.COUNTED));
        try {
            infer(running.endpoints(), examples);
            if (training.isPositive()) {
                context.console().out().println("trained: " + AotTrainingRequests.run(running.endpoints(), training));
            }
        } catch (IOException e) {
            running.stop();
            throw new StartException("inference failed: " + e.getMessage(), e);
        }
        if (!exit && training.isZero()) {
            context.console().out().println(ServeCommand.SERVING);
            context.shutdown().await();
        }
        return running.stop();
    }

    private void infer(Endpoints open, Path examples) throws IOException, InterruptedException {
        DigitImage image = DigitImage.read(examples.resolve("images").resolve(IMAGE));
        DigitLabels labels = new DigitLabels(Files.readAllLines(examples.resolve("models/digits/labels.txt")));
        if (open.localHttp().isPresent()) {
            String address = open.localHttp().get();
            print(image, "HTTP", labels.best(DigitClients.overHttp(address, image)));
        }
        if (open.grpc().isPresent()) {
            String target = open.grpc().get().local().authority();
            print(image, "gRPC", labels.best(DigitClients.overGrpc(target, image)));
        }
    }

    private void print(DigitImage image, String protocol, String result) {
        context.console().out().println(image.name() + " over " + protocol + ": " + result);
    }
}
