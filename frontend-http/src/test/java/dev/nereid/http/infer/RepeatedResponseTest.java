package dev.nereid.http.infer;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeResponse;
import io.vertx.core.buffer.Buffer;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Tests which texts of responses are kept, and the responses created from them. */
class RepeatedResponseTest {
    private static final RequestedOutputs BINARY = RequestedOutputs.all(true);
    private static final NamedTensor X = output("X", DataType.INT8, Shape.of(4), 1, 2, 3, 4);
    private static final NamedTensor Y = output("Y", DataType.INT8, Shape.of(2), 5, 6);

    private final RepeatedResponse repeated = new RepeatedResponse();

    /** Responses that say something else than one of version 1 of {@code m} with the outputs X and Y. */
    static final List<FakeResponse> OTHERS = List.of(
            response("n", 1, X, Y),
            response("m", 2, X, Y),
            response("m", 1, X),
            response("m", 1, X, Y, Y),
            response("m", 1, Y, X),
            response("m", 1, output("Z", DataType.INT8, Shape.of(4), 1, 2, 3, 4), Y),
            response("m", 1, output("X", DataType.UINT8, Shape.of(4), 1, 2, 3, 4), Y),
            response("m", 1, output("X", DataType.INT8, Shape.of(2, 2), 1, 2, 3, 4), Y),
            response("m", 1, X, output("Y", DataType.INT8, Shape.of(3), 5, 6, 7)),
            response("m", 1, X, output("Y", DataType.BYTES, Shape.of(2), 0, 0, 0, 0, 0, 0, 0, 0)),
            FakeResponse.of("m", 1, "id", List.of(X, Y), Map.of(), true),
            FakeResponse.of("m", 1, "", List.of(X, Y), Map.of("p", new ParameterValue.Int(1)), true));

    @Test
    void putsOtherBytesBehindTheSameText() {
        keep(response("m", 1, X, Y), BINARY);

        FakeResponse next = response(
                "m",
                1,
                output("X", DataType.INT8, Shape.of(4), 9, 8, 7, 6),
                output("Y", DataType.INT8, Shape.of(2), 5, 4));
        ResponseTemplate known = requireNonNull(repeated.find(next));

        JsonWriter json = new JsonWriter();
        new InferResponseJson(json).write(next, BINARY);
        int jsonSize = json.size();
        assertThat(known.body(next))
                .isEqualTo(Buffer.buffer(json.toByteArray()).appendBytes(new byte[] {9, 8, 7, 6, 5, 4}));
        assertThat(known.jsonSize()).isEqualTo(jsonSize);
    }

    @ParameterizedTest
    @FieldSource("OTHERS")
    void doesNotFindAResponseThatDiffers(FakeResponse other) {
        keep(response("m", 1, X, Y), BINARY);

        assertThat(repeated.find(other)).isNull();
    }

    @Test
    void distinguishesByteStringsOfDifferentLengths() {
        keep(response("m", 1, output("X", DataType.BYTES, Shape.of(1), 1, 0, 0, 0, 'a')), BINARY);

        assertThat(repeated.find(response("m", 1, output("X", DataType.BYTES, Shape.of(1), 2, 0, 0, 0, 'a', 'b'))))
                .isNull();
    }

    @Test
    void keepsNoTextWithElementsOfOneOutput() {
        FakeResponse response = response("m", 1, X, Y);
        RequestedOutputs mixed = RequestedOutputs.of(
                List.of(RequestedOutput.of("X"), RequestedOutput.of("Y")),
                List.of(RequestedOutputs.Format.BINARY, RequestedOutputs.Format.JSON));
        keep(response, mixed);

        assertThat(repeated.find(response)).isNull();
    }

    @Test
    void doesNotKeepElementsThatStandInTheText() {
        FakeResponse response = response("m", 1, X, Y);
        keep(response, RequestedOutputs.all(false));

        assertThat(repeated.find(response)).isNull();
    }

    @Test
    void keepsNothingThatIsNewEachTime() {
        FakeResponse named = FakeResponse.of("m", 1, "id", List.of(X), Map.of(), true);
        FakeResponse empty = FakeResponse.of("m", 1, "", List.of(), Map.of(), true);

        keep(named, BINARY);
        keep(empty, BINARY);

        assertThat(repeated.find(named)).isNull();
        assertThat(repeated.find(response("m", 1, X))).isNull();
        assertThat(repeated.find(empty)).isNull();
    }

    @Test
    void leavesOutputsOnADeviceToTheWriter() {
        keep(response("m", 1, X), BINARY);
        Tensor tensor =
                Tensor.of(DataType.INT8, Shape.of(4), X.tensor().data(), new MemoryPlace(MemoryPlace.Kind.GPU, 0));

        assertThat(repeated.find(response("m", 1, new NamedTensor("X", tensor))))
                .isNull();
    }

    @Test
    void keepsNoLongText() {
        FakeResponse longName = response("m".repeat(3000), 1, X);
        keep(longName, BINARY);

        assertThat(repeated.find(longName)).isNull();
    }

    @Test
    void keepsTheLastTextThatRepeats() {
        FakeResponse first = response("m", 1, X);
        FakeResponse second = response("m", 1, X, Y);
        keep(first, BINARY);
        respond(second, BINARY);
        assertThat(repeated.find(first)).isNotNull();

        respond(second, BINARY);

        assertThat(repeated.find(first)).isNull();
        assertThat(repeated.find(second)).isNotNull();
    }

    @Test
    void cachesRepeatedResponsesOnly() {
        FakeResponse response = response("m", 1, X, Y);
        respond(response, BINARY);
        assertThat(repeated.find(response)).isNull();

        respond(response, BINARY);

        assertThat(repeated.find(response)).isNotNull();
    }

    private void keep(FakeResponse response, RequestedOutputs outputs) {
        respond(response, outputs);
        respond(response, outputs);
    }

    private void respond(FakeResponse response, RequestedOutputs outputs) {
        JsonWriter json = new JsonWriter();
        new InferResponseJson(json).write(response, outputs);
        int jsonSize = json.size();
        json.raw("the bytes of the outputs");
        repeated.put(response, outputs, json.array(), jsonSize, json.size());
    }

    private static FakeResponse response(String model, long version, NamedTensor... outputs) {
        return FakeResponse.of(model, version, "", List.of(outputs), Map.of(), true);
    }

    private static NamedTensor output(String name, DataType type, Shape shape, int... bytes) {
        byte[] data = new byte[bytes.length];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) bytes[i];
        }
        return new NamedTensor(name, Tensor.of(type, shape, MemorySegment.ofArray(data)));
    }
}
