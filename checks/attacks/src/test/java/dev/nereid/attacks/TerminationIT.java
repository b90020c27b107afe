package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests SIGTERM under load, repeatedly. No request is lost on a connection that the server had not given up when the
 * request was sent.
 */
final class TerminationIT {
    private static final int ROUNDS = Integer.getInteger("termination.rounds", 20);
    private static final int HTTP_CLIENTS = 16;
    private static final int GRPC_CLIENTS = 8;
    private static final int CALLS_AT_ONCE = 4;
    private static final Duration LOAD = Duration.ofMillis(400);
    private static final Duration MAX_STOP = Duration.ofSeconds(5);

    @TempDir
    private Path directory;

    @Test
    void losesNothing() throws Exception {
        Map<String, Integer> outcomes = new ConcurrentSkipListMap<>();
        List<String> wrong = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            try (VictimServer server = VictimServer.start(directory, "--http-drain-secs=1")) {
                stop(server, outcomes, wrong);
            }
        }
        System.out.println("TerminationIT: " + outcomes);
        assertThat(wrong).as(outcomes.toString()).isEmpty();
        assertThat(outcomes.keySet()).allMatch(outcome -> !outcome.contains("LOST"), "not lost");
    }

    private static void stop(VictimServer server, Map<String, Integer> outcomes, List<String> wrong) throws Exception {
        AtomicInteger completed = new AtomicInteger();
        List<Thread> clients = new ArrayList<>();
        for (int i = 0; i < HTTP_CLIENTS; i++) {
            String model = i % 2 == 0 ? Models.ECHO : Models.PAUSING;
            clients.add(Thread.startVirtualThread(() -> overHttp(server, model, outcomes, completed)));
        }
        for (int i = 0; i < GRPC_CLIENTS; i++) {
            String model = i % 2 == 0 ? Models.ECHO : Models.PAUSING;
            clients.add(Thread.startVirtualThread(() -> overGrpc(server, model, outcomes, completed)));
        }
        Await.until("load", Duration.ofSeconds(20), () -> completed.get() > 200);
        Await.pause(LOAD);

        long before = System.nanoTime();
        server.terminate();
        int status = server.awaitEnd(Duration.ofSeconds(40));
        Duration took = Duration.ofNanos(System.nanoTime() - before);

        for (Thread client : clients) {
            client.join(Duration.ofSeconds(25));
            if (client.isAlive()) {
                wrong.add("a client still waits");
            }
        }
        if (status != 0) {
            wrong.add("exit status " + status);
        }
        if (took.compareTo(MAX_STOP) > 0) {
            wrong.add("stopped after " + took.toMillis() + " ms");
        }
        String log = server.log();
        if (log.contains(" ERROR ") || log.contains("Exception")) {
            wrong.add("log: " + log);
        }
    }

    /** Sends requests on one connection until the server announces its end. */
    private static void overHttp(
            VictimServer server, String model, Map<String, Integer> outcomes, AtomicInteger completed) {
        Tensor input =
                Tensor.floats("a", 1, 2, 3).shaped(model.equals(Models.PAUSING) ? new long[] {1, 3} : new long[] {3});
        byte[] request = RawHttp.infer(model, input);
        boolean isSent = false;
        try (RawHttp connection = RawHttp.connect(server.http())) {
            while (true) {
                connection.send(request);
                isSent = true;
                RawHttp.Response response = connection.read();
                isSent = false;
                if (response.status() == 200) {
                    completed.incrementAndGet();
                } else {
                    count(outcomes, "HTTP " + response.status() + " " + response.text());
                }
                if (response.announcesClose()) {
                    count(outcomes, "HTTP announced");
                    return;
                }
            }
        } catch (IOException e) {
            count(
                    outcomes,
                    "HTTP LOST " + (isSent ? "after the whole request: " : "while it was sent: ") + e.getMessage());
        } catch (RuntimeException e) {
            count(outcomes, "HTTP LOST by a fault of the client: " + e);
        }
    }

    /** Keeps some calls in flight on one connection until the server announces its end, and waits for their end. */
    private static void overGrpc(
            VictimServer server, String model, Map<String, Integer> outcomes, AtomicInteger completed) {
        Tensor input =
                Tensor.floats("a", 1, 2, 3).shaped(model.equals(Models.PAUSING) ? new long[] {1, 3} : new long[] {3});
        byte[] message = InferMessage.framed(InferMessage.request(model, input));
        try (RawHttp2 connection = RawHttp2.connect(server.grpc())) {
            List<RawHttp2.Call> calls = new ArrayList<>();
            try {
                while (!connection.isLeaving() || !connection.openStreams().isEmpty()) {
                    while (!connection.isLeaving() && calls.size() < CALLS_AT_ONCE) {
                        calls.add(connection.begin(Frames.INFER, message));
                    }
                    connection.readFrame();
                    calls.removeIf(call -> isOver(call, outcomes, completed));
                }
                count(outcomes, "gRPC announced");
            } catch (IOException e) {
                for (RawHttp2.Call call : calls) {
                    boolean isRetried = connection.isLeaving() && call.stream() > connection.lastStream();
                    count(outcomes, isRetried ? "gRPC not taken, to be retried" : "gRPC LOST " + e.getMessage());
                }
            }
        } catch (IOException e) {
            count(outcomes, "gRPC LOST " + e.getMessage());
        } catch (RuntimeException e) {
            count(outcomes, "gRPC LOST by a fault of the client: " + e);
        }
    }

    private static boolean isOver(RawHttp2.Call call, Map<String, Integer> outcomes, AtomicInteger completed) {
        if (call.ended()) {
            if (call.status() == RawHttp2.Call.OK) {
                completed.incrementAndGet();
            } else {
                // Neither a client nor its library may know that it can be sent again.
                count(outcomes, "gRPC LOST " + call.status() + " " + call.text());
            }
        }
        return call.ended();
    }

    private static void count(Map<String, Integer> outcomes, String outcome) {
        outcomes.merge(outcome, 1, Integer::sum);
    }
}
