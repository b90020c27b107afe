package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalOutputs;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Tests the backend behind the schedulers of a server. The dynamic batcher waits a minute for four requests here. */
final class IdentityServerTest {
    private static final String CONFIG = """
            max_batch_size: 8
            input { name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] }
            output { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] }
            dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }
            """;

    @Test
    void writesZerosForOptionalInputsThatAreLeftOut() {
        try (LocalServer server = LocalServer.with(new IdentityBackendProvider())
                .model("identity", """
                        max_batch_size: 8
                        input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] },
                                { name: "INPUT1" data_type: TYPE_INT32 dims: [ -1, 2 ] optional: true },
                                { name: "INPUT2" data_type: TYPE_STRING dims: [ 2 ] optional: true } ]
                        output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] },
                                 { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ -1, 2 ] },
                                 { name: "OUTPUT2" data_type: TYPE_STRING dims: [ 2 ] } ]
                        """)
                .start()) {
            LocalRequest two = LocalRequest.request().input("INPUT0", Shape.of(2, 1), 5, 6);
            LocalOutputs all = server.infer("identity", two);
            assertThat(all.ints("OUTPUT0")).containsExactly(5, 6);
            assertThat(all.shape("OUTPUT1")).isEqualTo(Shape.of(2, 1, 2));
            assertThat(all.ints("OUTPUT1")).containsExactly(0, 0, 0, 0);
            assertThat(all.strings("OUTPUT2")).containsExactly("", "", "", "");

            assertThat(server.infer("identity", two.outputs("OUTPUT0", "OUTPUT2"))
                            .names())
                    .containsExactlyInAnyOrder("OUTPUT0", "OUTPUT2");
            assertThat(server.infer(
                                    "identity",
                                    LocalRequest.request().input("INPUT0", 1).input("INPUT2", "a", "b"))
                            .strings("OUTPUT2"))
                    .containsExactly("a", "b");
        }
    }

    @Test
    void failsAloneWhereZerosWouldBeTooMany() {
        try (LocalServer server = LocalServer.with(new IdentityBackendProvider())
                .model("identity", """
                        input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] },
                                { name: "INPUT1" data_type: TYPE_INT32 dims: [ 4294967296, 4294967296 ]
                                  optional: true } ]
                        output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] },
                                 { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 4294967296, 4294967296 ] } ]
                        """)
                .start()) {
            LocalRequest request = LocalRequest.request().input("INPUT0", 5);
            assertThat(server.send("identity", request).error().publicMessage()).contains("4294967296");
            assertThat(server.infer("identity", request.outputs("OUTPUT0")).ints("OUTPUT0"))
                    .containsExactly(5);
        }
    }

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
