package dev.nereid.examples.iterativesequence;

import dev.nereid.spi.BackendProvider;
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

final class IterativeSequenceContractTest extends BackendContract {
    private static final Shape ONE = Shape.of(1, 1);

    @Override
    protected BackendProvider provider() {
        return new IterativeSequenceBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("iterative_sequence", 1)
                        .maxBatchSize(4)
                        .decoupled(true)
                        .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(1)))
                        .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(1)))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                .withIterative())
                        .build())
                .withParameter("execute_delay_ms", "0")
                .with(request(ONE, 1).output("OUTPUT", ONE, 0))
                .with(request(ONE, Integer.MIN_VALUE).output("OUTPUT", ONE, Integer.MIN_VALUE))
                .with(request(Shape.of(1, 2), 1, 2).failure("input 'INPUT': shape [1,2] (expected: one element)"));
    }

    private static ContractExample request(Shape shape, int... numbers) {
        return ContractExample.request()
                .input("INPUT", shape, numbers)
                .sequence(new Sequence(new Sequence.Id.Numeric(1), true, false));
    }
}
