package dev.nereid.distribution.execution;

import static dev.nereid.distribution.testing.HastyServer.assertDirect;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.log.LogFactory;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HastyServer;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/**
 * Tests a backend that promises short executions and breaks the promise. Each execution of one of its models takes 50
 * ms.
 */
@Timeout(120)
class LyingBackendIT {
    private static final String LIAR = "liar";
    private static final String HONEST = "honest";
    private static final String OWN_THREAD = "instance/liar/1/";
    /** As many long executions as refute the promise. */
    private static final int STRIKES = 3;

    @TempDir
    private Path directory;

    @Test
    void hurtsNoOtherModelForLongerThanItsFirstExecutions() throws Exception {
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        LogFactory lines = (LogFactory) LoggerFactory.getILoggerFactory();
        try (PrintStream kept = new PrintStream(log, true, UTF_8)) {
            PrintStream before = lines.writeTo(kept);
            try {
                lieAndHold();
            } finally {
                lines.writeTo(before);
            }
        }

        // A machine that is very busy may refute the honest one, too.
        assertThat(log.toString(UTF_8)
                        .lines()
                        .filter(line -> line.contains("declares its executions short"))
                        .filter(line -> line.contains("model=" + LIAR)))
                .singleElement()
                .asString()
                .contains("WARN", "backend=hasty");
    }

    private void lieAndHold() throws Exception {
        try (HastyServer server = new HastyServer(directory, LIAR, HONEST);
                HttpConnection held = server.server.http()) {
            for (int i = 0; i < STRIKES; i++) {
                assertDirect(infer(server.http, LIAR, -3));
            }
            assertThat(infer(server.http, LIAR, -3)).contains(OWN_THREAD);

            // From now on long executions do not block the event loop.
            Path gate =
                    Files.createFile(directory.resolve("models").resolve(LIAR).resolve("gate"));
            byte[] late = overHttp(LIAR, -4);
            held.send(late, 0, late.length);
            Eventually.holds("held", 60, () -> Files.exists(gate.resolveSibling("gate.waiting")));
            for (int i = 0; i < 20; i++) {
                assertThat(infer(server.http, HONEST, i)).contains("\"data\":[" + i + ".0]");
                assertThat(server.grpc()
                                .modelInfer(ClientRequest.of(HONEST)
                                        .input("INPUT0", "FP32", floats(i), 1)
                                        .overGrpc())
                                .getModelName())
                        .isEqualTo(HONEST);
            }
            assertThat(held.unread()).isZero();
            Files.delete(gate);
            assertThat(held.read().text()).contains(OWN_THREAD);
        }
    }

    private static String infer(HttpConnection http, String model, int first) throws IOException {
        return http.exchange(overHttp(model, first)).text();
    }

    private static byte[] overHttp(String model, int first) {
        return HttpRequests.json(
                model,
                "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[" + first + "]}]}");
    }
}
