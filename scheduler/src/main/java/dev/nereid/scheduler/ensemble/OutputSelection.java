package dev.nereid.scheduler.ensemble;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.stream.IntStream;

/**
 * Selects the steps that a set of requested outputs needs, and counts their reads. Immutable.
 *
 * <p>Steps that contribute to no requested output are left out.
 */
final class OutputSelection {
    private static final int[] NONE = {};

    private final int[] outputs;
    private final boolean[] needed;

    /** The selected steps that read each tensor. */
    private final int[][] readers;

    /** The number of reads of each tensor at its own depth. */
    private final int[] reads;

    /** {@code true} for each tensor that is read at a greater depth. */
    private final boolean[] readDeeper;

    private final boolean[] requested;
    private final int depth;

    private final int[][] steps;

    /** {@code true} for each depth from which a decoupled step leads to the next. */
    private final boolean[] decoupled;

    private OutputSelection(EnsemblePlan plan, int[] outputs, boolean[] needed) {
        this.outputs = outputs;
        this.needed = needed;
        int tensors = plan.tensorCount();
        depth = Arrays.stream(outputs).map(plan::depth).max().orElse(0);
        requested = new boolean[tensors];
        Arrays.stream(outputs).forEach(output -> requested[output] = true);
        readers = new int[tensors][];
        reads = new int[tensors];
        readDeeper = new boolean[tensors];
        for (int tensor = 0; tensor < tensors; tensor++) {
            readers[tensor] = readers(plan, tensor);
            countReads(plan, tensor);
        }
        steps = new int[depth + 1][];
        decoupled = new boolean[depth + 1];
        for (int i = 0; i <= depth; i++) {
            int level = i;
            steps[i] = IntStream.range(0, plan.stepCount())
                    .filter(step -> needed[step] && plan.step(step).depth() == level)
                    .toArray();
            decoupled[i] =
                    Arrays.stream(steps[i]).anyMatch(step -> plan.step(step).decoupled());
        }
    }

    /** Selects the steps before some outputs. */
    static OutputSelection of(EnsemblePlan plan, int[] outputs) {
        boolean[] needed = new boolean[plan.stepCount()];
        boolean[] seen = new boolean[plan.tensorCount()];
        Deque<Integer> open = new ArrayDeque<>();
        Arrays.stream(outputs).forEach(open::add);
        for (Integer tensor = open.poll(); tensor != null; tensor = open.poll()) {
            if (seen[tensor]) {
                continue;
            }
            seen[tensor] = true;
            int writer = writer(plan, tensor);
            if (writer >= 0 && !needed[writer]) {
                needed[writer] = true;
                Arrays.stream(plan.step(writer).tensors()).forEach(open::add);
            }
        }
        return new OutputSelection(plan, outputs, needed);
    }

    private static int writer(EnsemblePlan plan, int tensor) {
        return IntStream.range(0, plan.stepCount())
                .filter(step -> contains(plan.step(step).outputTensors(), tensor))
                .findFirst()
                .orElse(-1);
    }

    private static boolean contains(int[] numbers, int number) {
        return Arrays.stream(numbers).anyMatch(one -> one == number);
    }

    private int[] readers(EnsemblePlan plan, int tensor) {
        int[] found = IntStream.range(0, plan.stepCount())
                .filter(step -> needed[step] && contains(plan.step(step).tensors(), tensor))
                .toArray();
        return found.length == 0 ? NONE : found;
    }

    private void countReads(EnsemblePlan plan, int tensor) {
        for (int step : readers[tensor]) {
            if (plan.step(step).depth() == plan.depth(tensor)) {
                reads[tensor]++;
            } else {
                readDeeper[tensor] = true;
            }
        }
        if (requested[tensor]) {
            if (depth == plan.depth(tensor)) {
                reads[tensor]++;
            } else {
                readDeeper[tensor] = true;
            }
        }
    }

    boolean needs(int step) {
        return needed[step];
    }

    /** Returns the requested outputs, in the order of the configuration. */
    int[] outputs() {
        return outputs;
    }

    boolean isRequested(int tensor) {
        return requested[tensor];
    }

    int[] readers(int tensor) {
        return readers[tensor];
    }

    /** Returns how often a tensor is read at its own depth. */
    int reads(int tensor) {
        return reads[tensor];
    }

    boolean isReadDeeper(int tensor) {
        return readDeeper[tensor];
    }

    /** Returns the depth of the responses. */
    int depth() {
        return depth;
    }

    int[] steps(int level) {
        return steps[level];
    }

    /** Returns whether a decoupled step leads from a depth to the next. */
    boolean isDecoupled(int level) {
        return decoupled[level];
    }
}
