package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;

/** The contract around a backend of a test, which calls its tests itself. */
final class CheckedContract extends BackendContract {
    /** One test of the contract. */
    interface Check {
        void run(BackendContract contract) throws Throwable;
    }

    /** Makes one test of the tests of a factory, which has to have one at least. */
    static Check where(Function<BackendContract, Stream<DynamicTest>> tests) {
        return contract -> {
            List<DynamicTest> applicable = tests.apply(contract).toList();
            assertThat(applicable).isNotEmpty();
            for (DynamicTest test : applicable) {
                test.getExecutable().execute();
            }
        };
    }

    /** Enough to find a leak of a megabyte in each load. */
    private static final int FEW_LOADS = 60;

    private final BackendProvider provider;
    private final ContractModel model;

    /** Creates the contract of a backend. */
    CheckedContract(BackendProvider provider, ContractModel model) {
        this.provider = provider;
        this.model = model;
        readModel();
    }

    @Override
    protected BackendProvider provider() {
        return provider;
    }

    @Override
    protected ContractModel model() {
        return model;
    }

    @Override
    protected int loads() {
        return FEW_LOADS;
    }
}
