package dev.nereid.examples.repeat;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests models that are not decoupled in a server. */
final class RepeatServerTest {
    @AutoClose
    private final LocalServer server =
            LocalServer.with(new RepeatBackendProvider()).model("repeat", """
                    max_batch_size: 0
                    model_transaction_policy { decoupled: false }
                    input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
                            { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
                            { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
                    output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
                             { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
                    """).start();

    private ModelRequest request(int[] in, int[] delay, int wait) {
        return server.client()
                .request("repeat")
                .input("IN", Shape.of(in.length), in)
                .input("DELAY", unsigned(delay))
                .input("WAIT", unsigned(wait));
    }

    private static Tensor unsigned(int... numbers) {
        return Tensor.of(
                DataType.UINT32, Shape.of(numbers.length), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, numbers));
    }

    private void assertResponds(ModelRequest request, int out) throws InterruptedException {
        try (ModelResponse response = request.sendAndWait()) {
            assertThat(response.requireOutput("OUT").ints()).containsExactly(out);
            assertThat(response.requireOutput("IDX").longs()).containsExactly(0);
        }
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "40, 20", "20, 40"})
    void respondsWithTheElement(int delay, int wait) throws InterruptedException {
        assertResponds(request(new int[] {7}, new int[] {delay}, wait), 7);
    }

    @Test
    void respondsWithTheFirstOfSeveralElements() throws InterruptedException {
        assertResponds(request(new int[] {100, 101, 102, 103}, new int[4], 0), 100);
    }

    @Test
    void executesOthersWhileAResponseIsDelayed() throws InterruptedException {
        ModelRequest delayed = request(new int[] {1}, new int[] {-1}, 0);
        ReceivedResponses received = server.send(delayed);

        assertResponds(request(new int[] {2}, new int[1], 0), 2);
        assertThat(received.hasEnded()).isFalse();
        delayed.cancel();
        assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void refusesARequestWithoutElements() {
        BackendException error = server.send(request(new int[0], new int[0], 0)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(error.getMessage()).startsWith("expected a single response, got 0");
    }

    @Test
    void refusesAnotherNumberOfDelays() {
        BackendException error =
                server.send(request(new int[] {1}, new int[2], 0)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.getMessage()).startsWith("expected IN and DELAY shape to match, got [1] and [2]");
    }
}
