package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.api.ModelMetadata;
import dev.nereid.grpc.testing.RecordedCase;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.ModelInferRequest;
import io.grpc.CallOptions;
import io.grpc.Deadline;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests recorded responses of the reference server that need no backend. */
final class RecordedCasesIT {
    /** Intended differences: row 31 for ModelReady, row 23 for health of an unknown name. */
    private static final Set<Integer> DECIDED = Set.of(5, 10, 30);

    /** Served by a fake that checks nothing, so that only refusals of the front end are compared. */
    private static final Map<String, DataType> MODELS = Map.of(
            "identity_fp32", DataType.FP32,
            "identity_fp16", DataType.FP16,
            "identity_bf16", DataType.BF16);

    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    private List<RecordedCase> cases = List.of();

    @BeforeEach
    void readRecording() throws IOException {
        Path recording = Path.of("../../shared/golden/grpc.jsonl");
        assumeTrue(Files.isRegularFile(recording), "../shared/golden is absent");
        cases = RecordedCase.read(recording);
        assertThat(cases).hasSizeGreaterThan(150);
        MODELS.forEach((name, type) -> frontend.server.add(FakeModel.identity(name, type, 64, -1)));
        frontend.server.add(FakeModel.identity("classify", DataType.FP32, 64, -1));
        frontend.server.add(simple());
    }

    private static FakeModel simple() {
        Shape shape = Shape.of(16);
        ModelMetadata description = new ModelMetadata(
                "simple",
                List.of(1L),
                "onnxruntime_onnx",
                8,
                false,
                List.of(TensorSpec.of("INPUT0", DataType.INT32, shape), TensorSpec.of("INPUT1", DataType.INT32, shape)),
                List.of(
                        TensorSpec.of("OUTPUT0", DataType.INT32, shape),
                        TensorSpec.of("OUTPUT1", DataType.INT32, shape)));
        return new FakeModel(description, ReceivedRequest::respondWithInputs, Runnable::run, true);
    }

    @Test
    void respondsAsRecorded() {
        CallOptions inTime = CallOptions.DEFAULT.withDeadline(Deadline.after(60, TimeUnit.SECONDS));
        Map<String, String> differences = new TreeMap<>();
        int compared = 0;
        for (RecordedCase recorded : cases) {
            if (isForFrontend(recorded)) {
                compared++;
                recorded.replay(frontend.channel, inTime)
                        .ifPresent(difference -> differences.put(recorded.toString(), difference));
            }
        }

        assertThat(differences).isEmpty();
        assertThat(compared).isGreaterThan(35);
    }

    private static boolean isForFrontend(RecordedCase recorded) {
        if (!recorded.file().equals("grpc") || DECIDED.contains(recorded.number())) {
            return false;
        }
        return switch (recorded.method()) {
            case "ServerLive", "ModelReady", "HealthCheck" -> true;
            case "ModelMetadata" ->
                recorded.title().contains("'simple'") || recorded.response().startsWith("NOT_FOUND");
            case "ModelInfer" -> isRefusedByFrontend(recorded);
            default -> false;
        };
    }

    private static boolean isRefusedByFrontend(RecordedCase recorded) {
        String model = ((ModelInferRequest) recorded.message()).getModelName();
        boolean isServed = MODELS.containsKey(model)
                || Set.of("simple", "classify", "nope", "").contains(model);
        String response = recorded.response();
        return isServed
                && !response.startsWith("OK")
                && !response.contains("[request id:")
                && !response.contains("unexpected inference")
                && !response.contains("Socket closed");
    }
}
