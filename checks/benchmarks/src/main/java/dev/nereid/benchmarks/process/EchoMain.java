package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.ClientEventLoops;
import io.grpc.Server;
import java.io.IOException;

/** Entry point of a ceiling that a run starts as a process. */
public final class EchoMain {
    public static final String HTTP_ECHO = "http-echo";

    public static final String GRPC_ECHO = "grpc-echo";

    private EchoMain() {}

    /** Runs a ceiling; the arguments are its name and the number of its event loops. */
    public static void main(String[] args) throws IOException {
        int count = Integer.parseInt(args[1]);
        switch (args[0]) {
            case HTTP_ECHO -> httpEcho(count);
            case GRPC_ECHO -> grpcEcho(count);
            default ->
                throw new IllegalArgumentException(
                        "ceiling: '" + args[0] + "' (expected: " + HTTP_ECHO + " or " + GRPC_ECHO + ")");
        }
    }

    private static void httpEcho(int count) throws IOException {
        try (ClientEventLoops loops = ClientEventLoops.start(count)) {
            serve(HttpEcho.start(loops.vertx(), count));
        }
    }

    private static void grpcEcho(int count) throws IOException {
        try (ClientEventLoops loops = ClientEventLoops.start(count)) {
            Server server = GrpcEcho.start(loops);
            serve(server.getPort());
            server.shutdownNow();
        }
    }

    /** Prints the port, then waits for the end of the input. A ceiling therefore ends with the run that started it. */
    private static void serve(int port) throws IOException {
        System.out.println(port);
        while (System.in.read() >= 0) {
            // Nothing is sent to a ceiling.
        }
    }
}
