package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests more concurrent requests than memory for them. Each request completes, or is refused with a retry time. */
final class LargeRequestsIT {
    private static final int CLIENTS = 64;
    private static final int SIZE = 100_000_000;

    @RegisterExtension
    static final Victim victim = Victim.with();

    @Test
    void sixtyFourTimes100MegabytesOverHttp() throws Exception {
        byte[] header = largeHeader();
        byte[] data = new byte[SIZE];
        victim.fill(() -> {
            Map<String, Integer> outcomes = together(() -> overHttp(header, data));
            System.out.println("    " + outcomes);
            assertThat(outcomes.keySet())
                    .allMatch(outcome -> outcome.equals("200") || outcome.equals("503 with pause"));
        });
        assertThat(overHttp(header, data)).as("alone").isEqualTo("200");
    }

    @Test
    void sixtyFourTimes100MegabytesOverGrpc() throws Exception {
        byte[] message = InferMessage.framed(InferMessage.request(Models.ECHO, Tensor.zeros(SIZE)));
        victim.fill(() -> {
            Map<String, Integer> outcomes = together(() -> overGrpc(message));
            System.out.println("    " + outcomes);
            assertThat(outcomes.keySet()).allMatch(outcome -> outcome.equals("0") || outcome.equals("14 with pause"));
        });
        assertThat(overGrpc(message)).as("alone").isEqualTo("0");
    }

    private static byte[] largeHeader() {
        Tensor input = new Tensor("", "FP32", new long[] {SIZE / Float.BYTES}, new byte[0]);
        byte[] json = RawHttp.inferJson(input, SIZE);
        return RawHttp.concat(
                RawHttp.header(
                        RawHttp.path(Models.ECHO),
                        json.length + SIZE,
                        "Inference-Header-Content-Length: " + json.length),
                json);
    }

    /** Sends until the server responds, and reads the response. */
    private static String overHttp(byte[] header, byte[] data) throws IOException {
        try (RawHttp connection = RawHttp.connect(victim.server().http())) {
            try {
                connection.send(header);
                connection.send(data, 0, SIZE);
            } catch (IOException e) {
                // the server may have responded before
            }
            RawHttp.Header response = connection.readHeader();
            connection.skip(response.contentLength());
            return response.status() + (response.headers().containsKey("retry-after") ? " with pause" : "");
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static String overGrpc(byte[] framed) throws IOException {
        try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
            RawHttp2.Call call = connection.begin(Frames.INFER, new byte[0], false);
            call.discardMessages();
            connection.sendData(call, framed, true);
            connection.await(call);
            return call.status() + (call.headers().containsKey("grpc-retry-pushback-ms") ? " with pause" : "");
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static Map<String, Integer> together(Callable<String> client) throws Exception {
        Map<String, Integer> outcomes = new TreeMap<>();
        for (String outcome : ConcurrentClients.run(CLIENTS, client)) {
            outcomes.merge(outcome, 1, Integer::sum);
        }
        return outcomes;
    }
}
