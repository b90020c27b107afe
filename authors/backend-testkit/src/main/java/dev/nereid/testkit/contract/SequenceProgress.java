package dev.nereid.testkit.contract;

import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A sequence while its requests are executed, with the present values of its states. Confined to the test's thread. */
final class SequenceProgress {
    private final ModelSettings settings;
    private final List<ContractExample> requests;
    private final Map<String, Tensor> states = new LinkedHashMap<>();
    private int next;

    SequenceProgress(ModelSettings settings, List<ContractExample> requests) {
        this.settings = settings;
        this.requests = requests;
    }

    /** Returns requests with their positions in a sequence. */
    static List<ContractExample> positioned(long id, List<ContractExample> requests) {
        List<ContractExample> positioned = new ArrayList<>();
        for (int i = 0; i < requests.size(); i++) {
            positioned.add(requests.get(i)
                    .withDefaults(Map.of())
                    .sequence(new Sequence(new Sequence.Id.Numeric(id), i == 0, i == requests.size() - 1)));
        }
        return List.copyOf(positioned);
    }

    Sequence.Id id() {
        return requests.getFirst().sequence().orElseThrow().id();
    }

    boolean hasNext() {
        return next < requests.size();
    }

    /** Returns the next request, with the values of the states. */
    ContractExample next() {
        return requests.get(next).withDefaults(states);
    }

    /** Checks the response to the next request, and keeps the new values of the states. */
    void accept(LocalResponse response) {
        try {
            ContractChecks.check(requests.get(next), response);
        } catch (AssertionError e) {
            throw new AssertionError("request " + next + " of sequence " + id() + ": " + e.getMessage(), e);
        }
        next++;
        settings.sequenceBatching().ifPresent(batching -> {
            for (StateSpec state : batching.states()) {
                Tensor written = response.states().get(state.outputName());
                if (written != null) {
                    states.put(state.inputName(), written);
                }
            }
        });
    }
}
