package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.time.Duration;

final class SequenceContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new SequenceBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("sequence", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.INT32)))
                        .build())
                .with(add(3, 4, 7).sequence(position(new Sequence.Id.Numeric(7))))
                .with(ContractExample.request()
                        .input("INPUT", Shape.of(1, 2), 3, 4)
                        .sequence(position(new Sequence.Id.Text("seven")))
                        .failure("not an unsigned int"))
                .withSequence(1, add(1, 10, 11), add(2, 20, 33), add(3, 30, 66))
                .withSequence(2, add(5, 6, 11), add(7, 8, 26));
    }

    private static ContractExample add(int first, int second, int sum) {
        Shape shape = Shape.of(1, 2);
        return ContractExample.request().input("INPUT", shape, first, second).output("OUTPUT", shape, sum, sum);
    }

    private static Sequence position(Sequence.Id id) {
        return new Sequence(id, true, false);
    }
}
