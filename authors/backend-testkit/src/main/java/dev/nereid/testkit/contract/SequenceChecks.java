package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.SequenceEnd;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The checks of whole sequences, which are executed as the server does: with the direct strategy each sequence has its place
 * in the batch, and a null request is in the place of one that waits. Immutable.
 */
final class SequenceChecks {
    private final BackendProvider provider;
    private final ContractModel model;

    SequenceChecks(BackendProvider provider, ContractModel model) {
        this.provider = provider;
        this.model = model;
    }

    /** Executes each sequence alone, twice: nothing of the first time is used. */
    void runAlone() {
        try (LocalModel local = LocalModel.load(provider, model)) {
            for (List<ContractExample> sequence : twice(model.sequences())) {
                runAlone(local, sequence);
            }
        }
    }

    /** Returns whether an instance executes more than one sequence at a time. */
    boolean canInterleave() {
        return !hasPlaces() || model.settings().maxBatchSize() > 1;
    }

    /** Executes two sequences in turns, and in one batch if the model has batches. */
    void runInterleaved() {
        try (LocalModel local = LocalModel.load(provider, model)) {
            List<List<ContractExample>> sequences = model.sequences();
            for (int first = 0; first < sequences.size(); first++) {
                for (int second = 0; second < sequences.size(); second++) {
                    if (first != second) {
                        inTurns(local, sequences.get(first), sequences.get(second));
                        together(local, sequences.get(first), sequences.get(second));
                    }
                }
            }
        }
    }

    /** Ends each sequence before its last request, and executes it again from its start. */
    void runAgainAfterAnEarlyEnd() {
        try (LocalModel local = LocalModel.load(provider, model)) {
            for (List<ContractExample> sequence : model.sequences()) {
                SequenceProgress begun = new SequenceProgress(model.settings(), sequence);
                begun.accept(local.infer(begun.next()));
                local.instance(0).sequenceEnded(begun.id(), SequenceEnd.IDLE);
                runAlone(local, sequence);
            }
        }
    }

    private void runAlone(LocalModel local, List<ContractExample> sequence) {
        SequenceProgress progress = new SequenceProgress(model.settings(), sequence);
        while (progress.hasNext()) {
            progress.accept(local.infer(progress.next()));
        }
    }

    private void inTurns(LocalModel local, List<ContractExample> first, List<ContractExample> second) {
        List<SequenceProgress> both = both(first, second);
        while (both.getFirst().hasNext() || both.getLast().hasNext()) {
            for (int i = 0; i < both.size(); i++) {
                if (both.get(i).hasNext()) {
                    run(local, both, Set.of(i));
                }
            }
        }
    }

    private void together(LocalModel local, List<ContractExample> first, List<ContractExample> second) {
        if (model.settings().maxBatchSize() < 2) {
            return;
        }
        List<SequenceProgress> both = both(first, second);
        while (both.getFirst().hasNext() || both.getLast().hasNext()) {
            Set<Integer> places = new HashSet<>();
            for (int i = 0; i < both.size(); i++) {
                if (both.get(i).hasNext()) {
                    places.add(i);
                }
            }
            run(local, both, places);
        }
    }

    /** Executes the next requests of the sequences in some places, with null requests in earlier ones if places count. */
    private void run(LocalModel local, List<SequenceProgress> sequences, Set<Integer> places) {
        List<ContractExample> batch = new ArrayList<>();
        List<SequenceProgress> rows = new ArrayList<>();
        Set<Integer> nulls = new HashSet<>();
        ContractExample sample = sequences.get(Collections.min(places)).next();
        for (int i = 0; i <= Collections.max(places); i++) {
            if (places.contains(i)) {
                batch.add(sequences.get(i).next());
                rows.add(sequences.get(i));
            } else if (hasPlaces()) {
                nulls.add(batch.size());
                batch.add(ContractChecks.nullRequest(model.settings(), sample));
                rows.add(sequences.get(i));
            }
        }
        List<LocalResponse> responses = local.execution(batch, nulls).run(local.instance(0), () -> {});
        for (int row = 0; row < batch.size(); row++) {
            if (!nulls.contains(row)) {
                rows.get(row).accept(responses.get(row));
            }
        }
    }

    /** Returns whether a sequence is known by its place in the batch. */
    private boolean hasPlaces() {
        return model.settings()
                .sequenceBatching()
                .filter(batching -> batching.strategy() == SequenceBatching.Strategy.DIRECT)
                .isPresent();
    }

    private List<SequenceProgress> both(List<ContractExample> first, List<ContractExample> second) {
        return List.of(new SequenceProgress(model.settings(), first), new SequenceProgress(model.settings(), second));
    }

    private static <T> List<T> twice(List<T> list) {
        List<T> all = new ArrayList<>(list);
        all.addAll(list);
        return all;
    }
}
