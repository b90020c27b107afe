package dev.nereid.backend.python.death;

import dev.nereid.backend.python.PythonProvider;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;

/** A program with a server in it, which ends in one of several ways while clients send requests. */
final class EndingServer {
    private EndingServer() {}

    /**
     * Runs the program.
     *
     * @param arguments the repository; how it ends: {@code stay}, {@code exit}, {@code halt} or {@code close}; the code that
     *     the last request executes
     */
    public static void main(String[] arguments) throws InterruptedException {
        NereidServer server = NereidServer.start(ServerOptions.of(Path.of(arguments[0]))
                .with(o -> o.providers = List.of(new PythonProvider()))
                .withBackendSetting("python", "stub-timeout-seconds", "3"));
        if (arguments[1].equals("stay")) {
            Runtime.getRuntime().addShutdownHook(new Thread(server::close));
        }
        for (int i = 0; i < 4; i++) {
            Thread.ofPlatform().daemon().start(() -> {
                while (true) {
                    try (ModelResponse _ = send(server, "m", "value = np.arange(10000)")
                            .toCompletableFuture()
                            .join()) {
                        // Read and forgotten.
                    } catch (RuntimeException e) {
                        return;
                    }
                }
            });
        }
        CompletionStage<ModelResponse> _ = send(server, "hanging", arguments[2]);
        System.out.println("READY");
        switch (arguments[1]) {
            case "exit" -> System.exit(0);
            case "halt" -> Runtime.getRuntime().halt(0);
            case "close" -> server.close();
            default -> new CountDownLatch(1).await();
        }
    }

    private static CompletionStage<ModelResponse> send(NereidServer server, String model, String code) {
        return server.client()
                .request(model)
                .input("CODE", Shape.of(1), code)
                .input("IN", Shape.of(1), 1L)
                .send();
    }
}
