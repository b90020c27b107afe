package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LoadIdentity;
import dev.nereid.server.lifecycle.ServedModels;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;

/**
 * Identifies an ensemble together with the models that execute its steps at the moment. Immutable; safe for use by any
 * thread.
 *
 * <p>The identity changes when only a step is loaded again. It is not known while a step is not loaded, and for the
 * moment after its load in which its files are read: requests are not cached then.
 *
 * @param own identifies the ensemble without its steps
 * @param steps the model of each step, by its key
 * @param background computes the identities of steps that were loaded after the ensemble
 */
record EnsembleIdentity(LoadIdentity own, List<ModelRef> steps, ServedModels models, Executor background)
        implements LoadIdentity {
    @Override
    public Optional<String> known() {
        return serving().flatMap(this::of);
    }

    private Optional<List<Generation>> serving() {
        List<Generation> serving = new ArrayList<>(steps.size());
        for (ModelRef step : steps) {
            Optional<Generation> generation = models.find(step.name()).flatMap(entry -> entry.serving(step));
            if (generation.isEmpty()) {
                return Optional.empty();
            }
            serving.add(generation.get());
        }
        return Optional.of(serving);
    }

    /** Returns the identity of the ensemble if these generations execute its steps; empty if it is not known. */
    Optional<String> of(List<Generation> generations) {
        Optional<String> first = own.known();
        if (first.isEmpty()) {
            own.computeOn(background);
            return Optional.empty();
        }
        StringBuilder all = new StringBuilder(first.get());
        for (Generation generation : generations) {
            Optional<String> step = generation.model().identity().known();
            if (step.isEmpty()) {
                generation.model().identity().computeOn(background);
                return Optional.empty();
            }
            all.append('[')
                    .append(generation.model().version())
                    .append(':')
                    .append(step.get())
                    .append(']');
        }
        return Optional.of(all.toString());
    }

    @Override
    public void compute() {
        own.compute();
        for (Generation generation : serving().orElse(List.of())) {
            try {
                generation.model().identity().compute();
            } catch (InferenceException e) { // its files are gone: its responses are not cached
                return;
            }
        }
    }
}
