package dev.nereid.examples.repeat;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.server.LocalOutputs;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
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

    private static LocalRequest request(int[] in, int[] delay, int wait) {
        return LocalRequest.request()
                .input("IN", Shape.of(in.length), in)
                .input("DELAY", unsigned(delay))
                .input("WAIT", unsigned(wait));
    }

    private static Tensor unsigned(int... numbers) {
        return Tensor.of(
                DataType.UINT32, Shape.of(numbers.length), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, numbers));
    }

    private static int index(LocalOutputs outputs) {
        return outputs.tensor("IDX").data().get(ValueLayout.JAVA_INT, 0);
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "40, 20", "20, 40"})
    void respondsWithTheElement(int delay, int wait) {
        LocalOutputs outputs = server.infer("repeat", request(new int[] {7}, new int[] {delay}, wait));

        assertThat(outputs.ints("OUT")).containsExactly(7);
        assertThat(index(outputs)).isZero();
    }

    @Test
    void respondsWithTheFirstOfSeveralElements() {
        LocalOutputs outputs = server.infer("repeat", request(new int[] {100, 101, 102, 103}, new int[4], 0));

        assertThat(outputs.ints("OUT")).containsExactly(100);
        assertThat(index(outputs)).isZero();
    }

    @Test
    void executesOthersWhileAResponseIsDelayed() {
        PendingRequest delayed = server.send("repeat", request(new int[] {1}, new int[] {-1}, 0));

        assertThat(server.infer("repeat", request(new int[] {2}, new int[1], 0)).ints("OUT"))
                .containsExactly(2);
        assertThat(delayed.hasEnded()).isFalse();
        delayed.cancel();
        assertThat(delayed.error().code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void refusesARequestWithoutElements() {
        InferenceException error =
                server.send("repeat", request(new int[0], new int[0], 0)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(error.publicMessage()).startsWith("expected a single response, got 0");
    }

    @Test
    void refusesAnotherNumberOfDelays() {
        InferenceException error =
                server.send("repeat", request(new int[] {1}, new int[2], 0)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.publicMessage()).startsWith("expected IN and DELAY shape to match, got [1] and [2]");
    }
}
