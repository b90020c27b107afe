package dev.nereid.distribution;

import dev.nereid.api.BestEffort;
import dev.nereid.api.ModelRef;
import dev.nereid.distribution.aot.AotTrainingRequests;
import dev.nereid.distribution.demo.DemoClients;
import dev.nereid.distribution.demo.DemoRequest;
import dev.nereid.distribution.demo.DigitImage;
import dev.nereid.distribution.demo.DigitLabels;
import dev.nereid.distribution.demo.EnsemblePath;
import dev.nereid.distribution.demo.SamplePicture;
import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.LogFlags;
import dev.nereid.distribution.flags.ServerFlags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.CurlExample;
import inference.ModelConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** The command {@code nereid demo}: serves the bundled models and runs two inferences. Confined to its thread. */
final class DemoCommand implements Command {
    private static final String IMAGE = "digit_7_0.png";
    private static final String PICTURE = "star.png";

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
    public CommandForm form() {
        return new CommandForm(
                "demo",
                "[--exit] [FLAG]...",
                "Serves the bundled models, runs inferences on two images, and continues to serve.",
                CommandForm.SERVER_EXIT_CODES);
    }

    @Override
    public boolean isInterruptible() {
        return false;
    }

    @Override
    public void declare(Flags flags) {
        flags.toggle("--exit", () -> exit = true).help("Exits after the inferences.");
        flags.add("--train", FlagValue.SECONDS, v -> training = v)
                .help("After the inferences, loads the server with requests for so many seconds, and exits."
                        + " nereid-aot uses it, with the model and the plugin in the directory training. Default: 0,"
                        + " no load.");
        server.declare(flags);
        endpoints.declare(flags);
        log.declare(flags);
    }

    @Override
    public int run() throws StartException, InterruptedException, IOException {
        log.apply(context.log());
        Path examples = context.paths().home().resolve("examples");
        Path pipelines = examples.resolve("pipeline-models");
        server.options.modelRepositories.add(examples.resolve("models"));
        if (training.isZero()) { // the load is for the server's own methods
            server.options.modelRepositories.add(pipelines);
            server.options.plugins.add(examples.resolve("plugins"));
        }
        RunningServer running = RunningServer.start(server, endpoints, context.withFormat(log.format()));
        BestEffort.run(
                "start-up report",
                () -> context.console()
                        .out()
                        .println(running.report()
                                .text(
                                        CurlExample.Values.COUNTED,
                                        name -> !Files.isDirectory(pipelines.resolve(name)))));
        try {
            inferAll(running, examples);
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

    private void inferAll(RunningServer running, Path examples) throws IOException, InterruptedException {
        DigitImage image = DigitImage.read(examples.resolve("images").resolve(IMAGE));
        DigitLabels labels = new DigitLabels(Files.readAllLines(examples.resolve("models/digits/labels.txt")));
        infer(running.endpoints(), image.name(), image.request(), labels::best);
        if (training.isZero()) {
            SamplePicture picture =
                    SamplePicture.read(examples.resolve("images").resolve(PICTURE));
            ModelConfig config = running.report().models().config(ModelRef.latest(SamplePicture.MODEL));
            String way = "; from " + SamplePicture.MODEL + ": " + EnsemblePath.text(config);
            infer(
                    running.endpoints(),
                    picture.name(),
                    picture.request(),
                    response -> SamplePicture.result(response) + way);
        }
    }

    /** Sends a request over both protocols, and prints the results. */
    private void infer(Endpoints open, String name, DemoRequest request, ResultReader reader)
            throws IOException, InterruptedException {
        if (open.localHttp().isPresent()) {
            String address = open.localHttp().get();
            print(name, "HTTP", reader.read(DemoClients.overHttp(address, request)));
        }
        if (open.grpc().isPresent()) {
            String target = open.grpc().get().local().authority();
            print(name, "gRPC", reader.read(DemoClients.overGrpc(target, request)));
        }
    }

    private void print(String name, String protocol, String result) {
        context.console().out().println(name + " over " + protocol + ": " + result);
    }

    /** Reads the outputs of a response. */
    @FunctionalInterface
    private interface ResultReader {
        String read(ByteBuffer outputs) throws IOException;
    }
}
