package dev.nereid.testkit.contract;

import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Checks of responses and of what the backend leaves alone afterwards. Confined to the test's thread.
 *
 * @param local the loaded model
 */
record ResponseChecks(LocalModel local, ContractModel model) {
    private List<ContractExample> successful() {
        return model.examples().stream()
                .filter(example -> example.failure().isEmpty())
                .toList();
    }

    /** Requests each output alone. */
    void requestOutputs() {
        for (ContractExample example : successful()) {
            for (TensorSpec output : model.settings().outputs()) {
                ContractExample single = example.withOnlyOutput(output.name());
                ContractChecks.check(single, local.infer(single));
            }
        }
    }

    /** Executes other requests while the outputs of one are not released yet, and its inputs are overwritten. */
    void holdOutputs() {
        for (ContractExample example : successful()) {
            LocalExecution held = local.execution(List.of(example), Set.of());
            List<LocalResponse> responses = held.runAndHold(local.instance(0));
            try (held) {
                ContractChecks.check(example, responses.getFirst());
                for (ContractExample other : successful()) {
                    ContractChecks.check(other, local.infer(other));
                }
                held.checkUnchanged(responses);
            }
        }
    }

    /** Makes the clients of a decoupled model read late. */
    void readLate() {
        for (ContractExample example : successful()) {
            LocalExecution slow = local.execution(List.of(example), Set.of());
            slow.setReady(false);
            ContractChecks.check(
                    example,
                    slow.run(local.instance(0), () -> slow.setReady(true)).getFirst());
        }
    }

    /** Executes a request that fails in each place of a batch. */
    void failAlone(ContractExample bad) {
        for (ContractExample good : successful()) {
            boolean isRagged = model.settings().inputs().stream().anyMatch(input -> input.is(TensorSpec.Trait.RAGGED));
            if (isRagged || ContractChecks.fitTogether(good, bad)) {
                int size = Math.min(3, model.settings().maxBatchSize());
                for (int place = 0; place < size; place++) {
                    List<ContractExample> batch = new ArrayList<>();
                    for (int i = 0; i < size; i++) {
                        batch.add(i == place ? bad : good);
                    }
                    List<LocalResponse> responses = local.inferTogether(batch);
                    for (int i = 0; i < size; i++) {
                        ContractChecks.check(batch.get(i), responses.get(i));
                    }
                }
            }
        }
    }

    /** Replaces the only instance while the model is loaded. */
    void replaceInstance() {
        ContractExample example = successful().getFirst();
        ContractChecks.check(example, local.infer(example));
        local.addInstance();
        local.removeInstance();
        ContractChecks.check(example, local.infer(example));
    }
}
