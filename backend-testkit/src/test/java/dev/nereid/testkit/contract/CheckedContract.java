package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendProvider;

/** The contract around a backend of a test, which calls its tests itself. */
final class CheckedContract extends BackendContract {
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
