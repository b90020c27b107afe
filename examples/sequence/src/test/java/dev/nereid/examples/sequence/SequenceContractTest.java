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
    private static final Shape ONE = Shape.of(1, 1);

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
                .with(example(new Sequence.Id.Numeric(7)).output("OUTPUT", Shape.of(1, 2), 3, 4))
                .with(example(new Sequence.Id.Text("seven")).failure("not an unsigned int"));
    }

    private static ContractExample example(Sequence.Id id) {
        return ContractExample.request()
                .input("INPUT", Shape.of(1, 2), 3, 4)
                .input("START", ONE, 1)
                .input("READY", ONE, 1)
                .sequence(new Sequence(id, true, false));
    }
}
