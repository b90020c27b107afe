package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
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

    private static ModelRequest numbers(LocalServer server, Shape shape, int... numbers) {
        return server.client().request("identity").input("INPUT0", shape, numbers);
    }

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
            var all = server.send(numbers(server, Shape.of(2, 1), 5, 6)).one();
            assertThat(all.requireOutput("OUTPUT0").ints()).containsExactly(5, 6);
            assertThat(all.requireOutput("OUTPUT1").shape()).isEqualTo(Shape.of(2, 1, 2));
            assertThat(all.requireOutput("OUTPUT1").ints()).containsExactly(0, 0, 0, 0);
            assertThat(all.requireOutput("OUTPUT2").strings()).containsExactly("", "", "", "");

            var request = numbers(server, Shape.of(1, 1), 1).input("INPUT2", Shape.of(1, 2), "a", "b");
            var some = server.send(request.output("OUTPUT0").output("OUTPUT2")).one();
            assertThat(some.outputs()).containsExactlyInAnyOrder("OUTPUT0", "OUTPUT2");
            assertThat(some.requireOutput("OUTPUT2").strings()).containsExactly("a", "b");
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
            var all = numbers(server, Shape.of(1), 5);
            assertThat(server.send(all).error()).hasMessageContaining("4294967296");
            var one = numbers(server, Shape.of(1), 5).output("OUTPUT0");
            assertThat(server.send(one).one().requireOutput("OUTPUT0").ints()).containsExactly(5);
        }
    }

    @Test
    void returnsTheTextsOfABatch() {
        try (LocalServer server = LocalServer.with(new IdentityBackendProvider())
                .model("identity", CONFIG)
                .start()) {
            var client = server.client();
            List<ReceivedResponses> requests = Stream.of("a", "b", "", "ä")
                    .map(text -> server.send(client.request("identity").input("INPUT0", Shape.of(1, 1), text)))
                    .toList();

            assertThat(requests)
                    .extracting(request ->
                            request.one().requireOutput("OUTPUT0").strings().getFirst())
                    .containsExactly("a", "b", "", "ä");
        }
    }
}
