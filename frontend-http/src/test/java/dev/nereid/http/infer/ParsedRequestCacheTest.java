package dev.nereid.http.infer;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InputTensor;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which request texts are cached, and the requests read from the cache. */
class ParsedRequestCacheTest {
    private static final String TENSOR =
            "{'name':'X','shape':[4],'datatype':'INT8','parameters':{'binary_data_size':4}}";
    private static final String ONE = "{'inputs':[" + TENSOR + "],'parameters':{'binary_data_output':true,'p':1}}";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RequestMemory requestMemory = new RequestMemory(memory, server.sharedMemory());
    private final ParsedRequestCache texts = new ParsedRequestCache();

    @AfterEach
    void giveMemoryBack() {
        requestMemory.run();
    }

    @Test
    void readsOtherBytesBehindTheSameText() {
        keep(ONE, 1, 2, 3, 4);

        InferRequestBody request = requireNonNull(read(ONE, 5, 6, 7, 8));

        InputTensor input = request.inputs().getFirst();
        assertThat(input.name()).isEqualTo("X");
        assertThat(input.datatype()).isEqualTo("INT8");
        assertThat(input.dims()).containsExactly(4);
        assertThat(input.data().toArray(ValueLayout.JAVA_BYTE)).containsExactly(5, 6, 7, 8);
        assertThat(request.parameters()).containsOnlyKeys("p");
        assertThat(request.outputs().format("Y")).isEqualTo(RequestedOutputs.Format.BINARY);
    }

    @Test
    void readsSeveralInputs() {
        String two = "{'inputs':[" + TENSOR
                + ",{'name':'Y','shape':[2],'datatype':'INT8','parameters':{'binary_data_size':2}}]}";
        keep(two, 1, 2, 3, 4, 5, 6);

        InferRequestBody request = requireNonNull(read(two, 7, 7, 7, 7, 8, 9));

        assertThat(request.inputs()).extracting(InputTensor::name).containsExactly("X", "Y");
        assertThat(request.inputs().get(1).data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(8, 9);
    }

    @Test
    void doesNotKnowATextThatDiffers() {
        keep(ONE, 1, 2, 3, 4);

        assertThat(read(ONE.replace("'X'", "'Z'"), 1, 2, 3, 4)).isNull();
    }

    @Test
    void leavesTheWrongNumberOfBytesToTheReader() {
        for (int size = 0; size < 200; size++) {
            keep(ONE, 1, 2, 3, 4);

            assertThat(read(ONE, new int[size]) == null).as(size + " bytes").isEqualTo(size != 4);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{'id':'a','inputs':[" + TENSOR + "]}",
                "{'inputs':[" + TENSOR + "],'parameters':{'sequence_id':7}}",
                "{'inputs':[" + TENSOR + ",{'name':'Y','shape':[0],'datatype':'INT8','data':[]}]}",
            })
    void doesNotKeepWhatIsNewEachTime(String json) {
        keep(json, 1, 2, 3, 4);

        assertThat(read(json, 1, 2, 3, 4)).isNull();
    }

    @Test
    void doesNotKeepWhereAClientWantsAnOutput() {
        server.sharedMemory().register("r", "/r", 0, 64);
        String json = "{'inputs':[" + TENSOR
                + "],'outputs':[{'name':'Y','parameters':{'shared_memory_region':'r','shared_memory_byte_size':4}}]}";
        keep(json, 1, 2, 3, 4);

        assertThat(read(json, 1, 2, 3, 4)).isNull();
    }

    @Test
    void returnsNothingThatCouldBeChanged() {
        String json = ONE.replace("}]", "}],'outputs':[{'name':'Y'}]");
        InferRequestBody first = keep(json, 1, 2, 3, 4);

        assertThatThrownBy(() -> first.parameters().clear()).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> first.outputs().requested().clear()).isInstanceOf(UnsupportedOperationException.class);
        assertThat(requireNonNull(read(json, 1, 2, 3, 4)).parameters()).containsOnlyKeys("p");
    }

    @Test
    void doesNotKeepALongText() {
        String json = ONE + " ".repeat(2048);
        keep(json, 1, 2, 3, 4);

        assertThat(read(json, 1, 2, 3, 4)).isNull();
    }

    @Test
    void sharesTheResponseOfAText() {
        keep(ONE, 1, 2, 3, 4);

        RepeatedResponse response = requireNonNull(read(ONE, 1, 2, 3, 4)).repeated();

        assertThat(response).isNotNull();
        assertThat(requireNonNull(read(ONE, 5, 6, 7, 8)).repeated()).isSameAs(response);
        String other = ONE.replace("'X'", "'Z'");
        keep(other, 1, 2, 3, 4);
        assertThat(requireNonNull(read(other, 1, 2, 3, 4)).repeated()).isNotSameAs(response);
    }

    @Test
    void keepsTheLatestOfMany() {
        for (int i = 0; i < 10_000; i++) {
            String json = ONE.replace("'X'", "'X" + i + "'");
            keep(json, 1, 2, 3, 4);

            assertThat(read(json, 1, 2, 3, 4)).isNotNull();
        }
    }

    private InferRequestBody keep(String json, int... payload) {
        MemorySegment body = body(json, payload);
        InferRequestReader reader = new InferRequestReader("m", body, json.length(), requestMemory, 1 << 20);
        InferRequestBody request = reader.read();
        if (reader.usesOnlyBody()) {
            texts.put("m", body, json.length(), request);
        }
        body.fill((byte) 0);
        return request;
    }

    private InferRequestBody read(String json, int... payload) {
        return texts.get("m", body(json, payload), json.length());
    }

    private static MemorySegment body(String json, int... payload) {
        byte[] text = json.replace('\'', '"').getBytes(StandardCharsets.US_ASCII);
        byte[] body = Arrays.copyOf(text, text.length + payload.length);
        for (int i = 0; i < payload.length; i++) {
            body[text.length + i] = (byte) payload[i];
        }
        return MemorySegment.ofArray(body);
    }
}
