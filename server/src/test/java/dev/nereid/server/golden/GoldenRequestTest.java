package dev.nereid.server.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import com.google.protobuf.TextFormat;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.server.lifecycle.ModelSettingsReader;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.spi.MemoryPlace;
import inference.ModelInferRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Checks the recorded gRPC requests with raw tensors, and compares the outcomes. */
class GoldenRequestTest {
    private static final String MESSAGE = "ModelInferRequest\n";
    /** How long requests end in the record. */
    private static final String CUT = " characters in all>";

    private static final String REFUSED = "INVALID_ARGUMENT (3): ";

    /**
     * Cases that end otherwise on purpose: a batch of 0 and one of 2^32, both of which the reference takes for no batch
     * at all; and a byte string that runs past the end, which the reference hands to the backend.
     */
    private static final Set<Integer> OTHERWISE = Set.of(100, 105, 128);

    record Recorded(Golden.Case one, ModelInferRequest request) {
        boolean isRaw() {
            return request.getRawInputContentsCount() == request.getInputsCount()
                    && request.getInputsList().stream().noneMatch(ModelInferRequest.InferInputTensor::hasContents);
        }

        /** Returns whether the outcome depends on the checks alone: refused by them, or served. */
        boolean isOfChecks() {
            String response = one.response();
            return response.startsWith("OK")
                    || response.startsWith(REFUSED + "[request id: ")
                    || response.startsWith(REFUSED + "unexpected inference ");
        }

        @Override
        public String toString() {
            return one.toString();
        }
    }

    static List<Recorded> recorded() throws TextFormat.ParseException {
        List<Recorded> requests = new ArrayList<>();
        for (Golden.Case one : Golden.cases("grpc.jsonl", "response")) {
            boolean isWhole = !one.request().endsWith(CUT);
            if (one.part().equals("grpc")
                    && one.request().startsWith(MESSAGE)
                    && isWhole
                    && !OTHERWISE.contains(one.number())) {
                Recorded recorded = new Recorded(
                        one, TextFormat.parse(one.request().substring(MESSAGE.length()), ModelInferRequest.class));
                if (recorded.isRaw() && recorded.isOfChecks()) {
                    requests.add(recorded);
                }
            }
        }
        return requests;
    }

    @ParameterizedTest
    @MethodSource("recorded")
    void reportsTheErrorsOfTheReference(Recorded recorded) {
        ModelInferRequest request = recorded.request();
        String response = recorded.one().response();
        RequestChecks checks = RequestChecks.forModel(
                ModelSettingsReader.settings(
                        ModelConfigReader.read(Golden.path("models")
                                .resolve(request.getModelName())
                                .resolve("config.pbtxt")),
                        1),
                Map.of());

        if (response.startsWith("OK")) {
            CheckedRequest checked = checks.check(request(request), 0);
            assertThat(checked.inputs()).hasSize(request.getInputsCount());
        } else {
            InferenceException error =
                    catchThrowableOfType(InferenceException.class, () -> checks.check(request(request), 0));
            assertThat(error).isNotNull();
            assertThat(REFUSED + error.publicMessage()).isEqualTo(response);
        }
    }

    @Test
    void theRecordHoldsRefusalsAndResponses() throws TextFormat.ParseException {
        assertThat(recorded()).hasSizeGreaterThan(30);
        assertThat(recorded())
                .filteredOn(one -> one.one().response().startsWith(REFUSED))
                .hasSizeGreaterThan(15);
    }

    private static InferRequest request(ModelInferRequest request) {
        List<InputTensor> inputs = new ArrayList<>();
        for (int i = 0; i < request.getInputsCount(); i++) {
            ModelInferRequest.InferInputTensor input = request.getInputs(i);
            ByteString data = request.getRawInputContents(i);
            inputs.add(InputTensor.of(
                    input.getName(),
                    input.getDatatype(),
                    input.getShapeList().stream().mapToLong(Long::longValue).toArray(),
                    MemorySegment.ofArray(data.toByteArray()),
                    MemoryPlace.HOST));
        }
        List<RequestedOutput> outputs = request.getOutputsList().stream()
                .map(ModelInferRequest.InferRequestedOutputTensor::getName)
                .map(RequestedOutput::of)
                .toList();
        return new InferRequest(
                ModelRef.latest(request.getModelName()),
                request.getId(),
                inputs,
                outputs,
                Map.of(),
                RequestOptions.DEFAULT,
                () -> {});
    }
}
