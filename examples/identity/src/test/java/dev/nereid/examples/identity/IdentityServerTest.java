package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Tests the backend behind the dynamic batcher of a server, which waits a minute for four requests here. */
final class IdentityServerTest {
    private static final String CONFIG = """
            max_batch_size: 8
            input { name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] }
            output { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] }
            dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }
            """;

    @Test
    void returnsTheTextsOfABatch() {
        try (LocalServer server = LocalServer.with(new IdentityBackendProvider())
                .model("identity", CONFIG)
                .start()) {
            List<PendingRequest> requests = Stream.of("a", "b", "", "ä")
                    .map(text -> server.send("identity", LocalRequest.of("INPUT0", text)))
                    .toList();

            assertThat(requests)
                    .extracting(request -> request.response().strings("OUTPUT0").getFirst())
                    .containsExactly("a", "b", "", "ä");
        }
    }
}
