package dev.nereid.walkthrough;

import static dev.nereid.walkthrough.TestTensors.floats;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests a backend with implicit state and with a state of its own. */
final class RunningTotalTest {
    private static final Path DIRECTORY = Path.of("m");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings settings = settings()
            .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                    .with(StateSpec.of("TOTAL_IN", "TOTAL_OUT", DataType.FP32, Shape.of(1))))
            .build();

    @Test
    void addsUpASequenceFromItsStartToItsEnd() {
        ModelInstance instance = backend().load(context(settings)).newInstance(new FakeInstanceContext("m_0_0"));

        float first = execute(instance, 0, 5, new Sequence(new Sequence.Id.Numeric(7), true, false), Map.of());
        float second = execute(instance, first, 2, new Sequence(new Sequence.Id.Numeric(7), false, false), Map.of());
        Map<String, Object> three = Map.of("requests", 3L);
        float third = execute(instance, second, 1, new Sequence(new Sequence.Id.Numeric(7), false, true), three);

        assertThat(List.of(first, second, third)).containsExactly(5f, 7f, 8f);
        Map<String, Object> one = Map.of("requests", 1L);
        execute(instance, 0, 4, new Sequence(new Sequence.Id.Numeric(7), true, true), one);
    }

    @Test
    void leavesNullRequestsAlone() {
        ModelInstance instance = backend().load(context(settings)).newInstance(new FakeInstanceContext("m_0_0"));
        FakeRequest empty = new FakeRequest(1, List.of("TOTAL")).asNullRequest().withState("TOTAL_OUT", memory);
        FakeRequest request = request(1, 2, new Sequence(new Sequence.Id.Text("s"), true, false));

        try (FakeBatch batch = new FakeBatch(settings, memory, empty, request)) {
            instance.execute(batch);

            assertThat(empty.writtenState("TOTAL_OUT")).isEmpty();
            assertThat(floats(request.outputs().get("TOTAL"))).containsExactly(3f);
        }
    }

    @Test
    void refusesAModelWithoutTheState() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend().load(context(settings().build())))
                .withMessage("state 'TOTAL_OUT': not in sequence_batching");
    }

    /** Executes one request, and returns the new value of the state. */
    private float execute(
            ModelInstance instance, float state, float value, Sequence position, Map<String, Object> parameters) {
        FakeRequest request = request(state, value, position);
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            instance.execute(batch);

            assertThat(request.responseParameters().asMap()).isEqualTo(parameters);
            assertThat(floats(request.outputs().get("TOTAL"))).containsExactly(state + value);
            return floats(request.writtenState("TOTAL_OUT").orElseThrow()).getFirst();
        }
    }

    private FakeRequest request(float state, float value, Sequence position) {
        return new FakeRequest(1, List.of("TOTAL"))
                .with("VALUE", floats(Shape.of(1, 1), value))
                .with("TOTAL_IN", floats(Shape.of(1, 1), state))
                .withState("TOTAL_OUT", memory)
                .withSequence(position)
                .withResponse(memory);
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("VALUE", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("TOTAL", DataType.FP32, Shape.of(1)));
    }

    private static FakeModelContext context(ModelSettings settings) {
        return new FakeModelContext(settings, DIRECTORY);
    }

    private static Backend backend() {
        return new RunningTotal().create(new FakeBackendContext(Map.of(), DIRECTORY, 1));
    }
}
