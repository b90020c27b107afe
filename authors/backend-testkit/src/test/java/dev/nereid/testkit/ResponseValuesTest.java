package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests outputs that are copied from Java arrays, and inputs that are missing. */
final class ResponseValuesTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeRequest request = new FakeRequest(1, List.of()).withResponse(memory);

    @AfterEach
    void tearDown() {
        request.response().discard();
        memory.close();
    }

    @Test
    void copiesValuesOfEachType() {
        InferenceResponse response = request.response();
        byte[] binary = {0, -1};

        response.putFloats("F", Shape.of(1, 2), 1.5f, -2);
        response.putDoubles("D", Shape.of(1), Math.PI);
        response.putInts("I", Shape.of(2), 7, Integer.MIN_VALUE);
        response.putLongs("L", Shape.SCALAR, Long.MAX_VALUE);
        response.putStrings("S", Shape.of(2), List.of("é", ""));
        response.putByteStrings("B", Shape.of(1), List.of(binary));
        binary[0] = 9;

        assertThat(request.outputs().get("F").type()).isEqualTo(DataType.FP32);
        assertThat(request.outputs().get("F").shape()).isEqualTo(Shape.of(1, 2));
        assertThat(request.outputs().get("F").floats()).containsExactly(1.5f, -2);
        assertThat(request.outputs().get("D").doubles()).containsExactly(Math.PI);
        assertThat(request.outputs().get("I").ints()).containsExactly(7, Integer.MIN_VALUE);
        assertThat(request.outputs().get("L").longs()).containsExactly(Long.MAX_VALUE);
        assertThat(request.outputs().get("S").strings()).containsExactly("é", "");
        assertThat(request.outputs().get("B").byteStrings().getFirst()).containsExactly(0, -1);
    }

    @Test
    void refusesAnotherNumberOfValuesBeforeItAllocates() {
        InferenceResponse response = request.response();

        assertThatIllegalArgumentException()
                .isThrownBy(() -> response.putFloats("F", Shape.of(2), 1))
                .withMessage("output 'F': values: 1 (expected: 2 for [2])");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> response.putStrings("S", Shape.of(1), List.of("a", "b")))
                .withMessage("output 'S': elements: 2 (expected: 1 for [1])");
        assertThat(request.outputs()).isEmpty();
    }

    @Test
    void namesTheMissingInputAndThoseThatAreThere() {
        Tensor there = Tensor.ofInts(Shape.of(1), 1);
        request.with("A", there).with("B", there);

        assertThat(request.requireInput("A").data()).isEqualTo(there.data());
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> request.requireInput("C"))
                .withMessage("input 'C': not in the request (it has: [A, B])")
                .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
    }
}
