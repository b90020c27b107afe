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

final class DynaSequenceContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new DynaSequenceBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("dyna_sequence", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(5))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_END, "END", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "CORRID", DataType.UINT64)))
                        .build())
                .with(add(3, 6).sequence(new Sequence(new Sequence.Id.Numeric(7), true, false)))
                .with(add(3, 14).sequence(new Sequence(new Sequence.Id.Numeric(8), true, true)))
                .withSequence(1, add(1, 2), add(2, 6), add(3, 13))
                .withSequence(2, add(5, 10), add(7, 26));
    }

    private static ContractExample add(int number, int sum) {
        Shape shape = Shape.of(1, 2);
        return ContractExample.request().input("INPUT", shape, number, number).output("OUTPUT", shape, sum, sum);
    }
}
