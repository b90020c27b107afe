package dev.nereid.testkit.contract;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.LeakCheckingMemory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/**
 * The contract of a backend, as a JUnit test. A subclass names the backend and a model with requests to it:
 *
 * {@snippet :
 * final class TwiceContractTest extends BackendContract {
 *     @Override
 *     protected BackendProvider provider() {
 *         return new Twice();
 *     }
 *
 *     @Override
 *     protected ContractModel model() {
 *         return ContractModel.of(ModelSettings.builder("doubled", 1)
 *                         .maxBatchSize(8)
 *                         .input(TensorSpec.of("INPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
 *                         .output(TensorSpec.of("OUTPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
 *                         .build())
 *                 .with(ContractExample.request()
 *                         .input("INPUT", Shape.of(1, 2), 1f, 2.5f)
 *                         .output("OUTPUT", Shape.of(1, 2), 2f, 5f));
 *     }
 * }
 * }
 *
 * <p>The configuration of the model and the given requests select the tests: batches, ragged and optional inputs,
 * errors, sequences with their null requests and states, decoupled responses. A test that does not apply does not
 * exist; a test that this system cannot make is skipped with the reason.
 */
public abstract class BackendContract {
    private static final int LOADS = 1000;
    private static final int INSTANCES = 2;
    private static final int MAX_BATCH = 4;

    @TempDir
    private Path temporary;

    private ContractModel model =
            ContractModel.of(ModelSettings.builder("none", 0).build());

    /** For subclasses. */
    protected BackendContract() {}

    /**
     * Returns the provider of the backend.
     *
     * @return the provider, a new one or always the same
     */
    protected abstract BackendProvider provider();

    /**
     * Returns a model of the backend.
     *
     * @return the model, with at least one request
     */
    protected abstract ContractModel model();

    /**
     * Returns how often the model is loaded to find leaks.
     *
     * @return 1,000 unless overridden
     */
    protected int loads() {
        return LOADS;
    }

    /** Reads the model. Skips everything if the backend says that it cannot work on this machine. */
    @BeforeEach
    public final void readModel() {
        Optional<String> reason = provider().unavailable();
        assumeTrue(reason.isEmpty(), () -> "backend unavailable: " + reason.orElse(""));
        ContractModel declared = model();
        model = declared.cacheDirectory().isPresent() ? declared : declared.withCache(temporary);
        require(
                !successful().isEmpty(),
                "examples: none that succeeds (expected: at least one of ContractModel.with, also beside sequences)");
    }

    /** The name fits configurations, and is the same at every call. */
    @Test
    public final void namesItself() {
        String name = provider().name();
        require(name.matches("[a-z0-9_-]+"), "name: '" + name + "' (expected: lower-case letters, digits, _ and -)");
        require(name.equals(provider().name()), "name: differs from call to call (expected: always '" + name + "')");
    }

    /** The completion by the backend agrees with the configuration. */
    @Test
    public final void completesWithoutContradiction() {
        Path cache = model.cacheDirectory().orElseThrow();
        FakeModelContext context = model.context(0);
        try (Backend backend = provider().create(new FakeBackendContext(model.backendSettings(), cache, 1))) {
            Optional<ModelCompletion> completion = backend.complete(context);
            context.endLoad();
            completion.ifPresent(found -> {
                int maxBatchSize = model.settings().maxBatchSize();
                int limit = found.maxBatchSizeLimit().orElse(maxBatchSize);
                require(
                        maxBatchSize <= limit,
                        "max_batch_size: " + maxBatchSize + " (expected: at most " + limit + ")");
                ContractChecks.agree("input", model.settings().inputs(), found.inputs());
                ContractChecks.agree("output", model.settings().outputs(), found.outputs());
            });
        }
    }

    /** Each request alone gets its responses, also after the others: nothing of an earlier execution is used. */
    @Test
    public final void respondsToEachRequest() {
        try (LocalModel local = load()) {
            for (int round = 0; round < 2; round++) {
                for (ContractExample example : model.examples()) {
                    ContractChecks.check(example, local.infer(example));
                }
            }
        }
    }

    /** Requests of equal shapes get the same responses in a batch. */
    @TestFactory
    public final Stream<DynamicTest> respondsToBatches() {
        return where(hasBatches(), "max_batch_size", local -> {
            for (ContractExample first : successful()) {
                List<ContractExample> batch = new ArrayList<>();
                for (ContractExample other : successful()) {
                    if (ContractChecks.fitTogether(first, other)) {
                        batch.add(other);
                    }
                }
                batch.add(first);
                runBatch(local, limited(batch));
            }
        });
    }

    /** Requests with ragged inputs of different shapes get the same responses in a batch. */
    @TestFactory
    public final Stream<DynamicTest> respondsToRaggedBatches() {
        return where(hasInput(TensorSpec.Trait.RAGGED), "allow_ragged_batch", () -> {
            List<ContractExample> examples = limited(successful());
            require(
                    examples.stream().anyMatch(example -> !ContractChecks.fitTogether(examples.getFirst(), example)),
                    "examples: all of one shape (expected: two of different shapes, since an input is ragged)");
            try (LocalModel local = load()) {
                runBatch(local, examples);
            }
        });
    }

    /** A request without an optional input gets its response. */
    @TestFactory
    public final Stream<DynamicTest> respondsWithoutOptionalInputs() {
        return where(hasInput(TensorSpec.Trait.OPTIONAL), "optional", () -> {
            for (TensorSpec input : model.settings().inputs()) {
                boolean shown = successful().stream()
                        .anyMatch(example -> !example.inputs().containsKey(input.name()));
                require(
                        !input.is(TensorSpec.Trait.OPTIONAL) || shown,
                        "examples: all have the input '" + input.name()
                                + "' (expected: one without, since it is optional)");
            }
            try (LocalModel local = load()) {
                for (ContractExample example : successful()) {
                    ContractChecks.check(example, local.infer(example));
                }
            }
        });
    }

    /** A request without an input that is required fails at most itself, and with a proper error. */
    @Test
    public final void survivesMissingInputs() {
        ContractExample first = successful().getFirst();
        try (LocalModel local = load()) {
            for (String input : first.inputs().keySet()) {
                Optional<BackendException> failure =
                        local.infer(first.without(input)).failure();
                failure.ifPresent(error ->
                        require(!String.valueOf(error.getMessage()).isBlank(), "failure without a message: " + error));
                ContractChecks.check(first, local.infer(first));
            }
        }
    }

    /** A request that fails leaves the others of its batch alone, in whichever place it is. */
    @TestFactory
    public final Stream<DynamicTest> failsOneRequestOfABatchAlone() {
        boolean applies = hasBatches() && successful().size() < model.examples().size();
        return where(applies, "a failure with max_batch_size", local -> {
            for (ContractExample bad : model.examples()) {
                if (bad.failure().isPresent()) {
                    new ResponseChecks(local, model).failAlone(bad);
                }
            }
        });
    }

    /** A request for one output gets that output. */
    @TestFactory
    public final Stream<DynamicTest> respondsWithRequestedOutputs() {
        return where(model.settings().outputs().size() > 1, "several outputs", local -> {
            new ResponseChecks(local, model).requestOutputs();
        });
    }

    /** Outputs stay as they are until they are released, whatever is executed meanwhile; inputs are not read any more. */
    @Test
    public final void keepsOutputsUntilTheirRelease() {
        try (LocalModel local = load()) {
            new ResponseChecks(local, model).holdOutputs();
        }
    }

    /** A client that reads late gets all responses of a decoupled model. */
    @TestFactory
    public final Stream<DynamicTest> respondsToSlowClients() {
        return where(model.settings().decoupled(), "decoupled", local -> {
            new ResponseChecks(local, model).readLate();
        });
    }

    /** The requests of a sequence get their responses in order, and states go from one to the next. */
    @TestFactory
    public final Stream<DynamicTest> respondsToSequences() {
        return where(hasSequences(), "withSequence", () -> new SequenceChecks(provider(), model).runAlone());
    }

    /** Two sequences that are executed in turns, or in one batch, do not touch one another. */
    @TestFactory
    public final Stream<DynamicTest> keepsSequencesApart() {
        SequenceChecks checks = new SequenceChecks(provider(), model);
        boolean applies = hasSequences() && model.sequences().size() > 1 && checks.canInterleave();
        return where(applies, "two sequences", checks::runInterleaved);
    }

    /** A sequence that ended without its last request leaves nothing to a later one. */
    @TestFactory
    public final Stream<DynamicTest> beginsSequencesAnew() {
        return where(
                hasSequences(), "withSequence", () -> new SequenceChecks(provider(), model).runAgainAfterAnEarlyEnd());
    }

    /** A null request of a sequence batch fails nothing and changes no response. */
    @TestFactory
    public final Stream<DynamicTest> leavesNullRequestsAlone() {
        boolean applies = hasBatches() && model.settings().sequenceBatching().isPresent();
        return where(applies, "sequence_batching with max_batch_size", local -> {
            for (ContractExample example : successful()) {
                ContractExample empty = ContractChecks.nullRequest(model.settings(), example);
                List<LocalResponse> responses =
                        local.execution(List.of(empty, example), Set.of(0)).run(local.instance(0), () -> {});
                responses.getFirst().failure().ifPresent(error -> {
                    throw new AssertionError("null request failed (expected: ignored): " + error, error);
                });
                ContractChecks.check(example, responses.getLast());
            }
        });
    }

    /** A cancelled request ends, before its execution or during it, and the next one is served. */
    @Test
    public final void endsCancelledRequests() {
        try (LocalModel local = load()) {
            for (ContractExample example : successful()) {
                LocalExecution before = local.execution(List.of(example), Set.of());
                before.cancel();
                before.run(local.instance(0), () -> {});
                LocalExecution during = local.execution(List.of(example), Set.of());
                during.run(local.instance(0), during::cancel);
                ContractChecks.check(example, local.infer(example));
            }
        }
    }

    /** Memory that is exhausted fails requests, and leaves nothing open. */
    @Test
    public final void survivesExhaustedMemory() {
        ContractExample first = successful().getFirst();
        try (LocalModel local = load()) {
            new LocalExecution(
                            model,
                            List.of(first),
                            Set.of(),
                            new LeakCheckingMemory(ContractChecks.byteSize(model.completed(first, false))))
                    .run(local.instance(0), () -> {});
            ContractChecks.check(first, local.infer(first));
        }
    }

    /** Instances execute at the same time without touching one another's requests. */
    @Test
    public final void executesInstancesAtTheSameTime() {
        try (LocalModel local = LocalModel.load(provider(), model, INSTANCES)) {
            ConcurrentRuns.run(INSTANCES, thread -> {
                List<ContractExample> order = new ArrayList<>(model.examples());
                if (thread % 2 == 1) {
                    Collections.reverse(order);
                }
                for (ContractExample example : order) {
                    LocalExecution execution = local.execution(List.of(example), Set.of());
                    ContractChecks.check(
                            example,
                            execution.run(local.instance(thread), () -> {}).getFirst());
                }
            });
        }
    }

    /** Instances are added and closed while the model is loaded. */
    @Test
    public final void replacesInstances() {
        try (LocalModel local = load()) {
            new ResponseChecks(local, model).replaceInstance();
        }
    }

    /** No thread of the backend is alive after its close. */
    @Test
    public final void endsItsThreads() {
        LeftThreads threads = LeftThreads.now();
        try (LocalModel local = load()) {
            for (ContractExample example : successful()) {
                ContractChecks.check(example, local.infer(example));
            }
        }
        threads.check(model.timeout());
    }

    /**
     * Loads and unloads leave no models, threads, files and native memory behind. Skipped after the checks that are
     * possible if the system does not say how much of the others is in use.
     */
    @Tag("slow")
    @Test
    public final void leavesNothingBehindAfterLoads() {
        List<String> unknown = new LoadCycles(provider(), model, successful().getFirst(), this::resources).run(loads());
        assumeTrue(unknown.isEmpty(), () -> "not checked: " + unknown + ", which this system does not count");
    }

    /** Returns the test, or none if it does not apply to the model. */
    private static Stream<DynamicTest> where(boolean applies, String reason, Executable test) {
        return applies ? Stream.of(DynamicTest.dynamicTest(reason, test)) : Stream.empty();
    }

    private Stream<DynamicTest> where(boolean applies, String reason, Consumer<LocalModel> test) {
        return where(applies, reason, () -> {
            try (LocalModel local = load()) {
                test.accept(local);
            }
        });
    }

    private boolean hasBatches() {
        return model.settings().maxBatchSize() > 1;
    }

    private boolean hasSequences() {
        return model.settings().sequenceBatching().isPresent()
                && !model.sequences().isEmpty();
    }

    private void runBatch(LocalModel local, List<ContractExample> batch) {
        List<LocalResponse> responses = local.inferTogether(batch);
        for (int i = 0; i < batch.size(); i++) {
            ContractChecks.check(batch.get(i), responses.get(i));
        }
    }

    /** Returns what the process uses at this moment. */
    ResourceWatch resources() {
        return ResourceWatch.now();
    }

    private LocalModel load() {
        return LocalModel.load(provider(), model);
    }

    private List<ContractExample> successful() {
        return model.examples().stream()
                .filter(example -> example.failure().isEmpty())
                .toList();
    }

    private List<ContractExample> limited(List<ContractExample> examples) {
        int limit = Math.min(MAX_BATCH, model.settings().maxBatchSize());
        return examples.subList(Math.max(0, examples.size() - limit), examples.size());
    }

    private boolean hasInput(TensorSpec.Trait trait) {
        return model.settings().inputs().stream().anyMatch(input -> input.is(trait));
    }

    private static void require(boolean holds, String message) {
        if (!holds) {
            throw new AssertionError(message);
        }
    }
}
