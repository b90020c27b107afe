package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Right backends pass the contract, and each deliberate fault is found by one of its tests. */
final class BackendContractTest {
    private static final Shape ANY = Shape.of(Shape.VARIABLE);
    private static final int LEAK = 1 << 20;
    /** Above 16 MiB in 500 loads. */
    private static final int SLOW_LEAK = 64 << 10;

    private static final int MANY_LOADS = 1000;

    @TempDir
    private Path cache;

    private static ContractExample example(float... numbers) {
        float[] doubled = new float[numbers.length];
        for (int i = 0; i < numbers.length; i++) {
            doubled[i] = 2 * numbers[i];
        }
        Shape shape = Shape.of(1, numbers.length);
        return ContractExample.request().input("IN", shape, numbers).output("OUT", shape, doubled);
    }

    private static TensorSpec input(TensorSpec.Trait... traits) {
        TensorSpec spec = TensorSpec.of("IN", DataType.FP32, ANY);
        for (TensorSpec.Trait trait : traits) {
            spec = spec.with(trait);
        }
        return spec;
    }

    private static ContractModel batching() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(input(TensorSpec.Trait.RAGGED))
                        .input(TensorSpec.of("MORE", DataType.FP32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL))
                        .output(TensorSpec.of("OUT", DataType.FP32, ANY))
                        .build())
                .with(example(1, 2))
                .with(example(3, 4))
                .with(example(5, 6, 7))
                .with(ContractExample.request()
                        .input("IN", Shape.of(1, 1), 1f)
                        .input("MORE", Shape.of(1, 1), 10f)
                        .output("OUT", Shape.of(1, 1), 12f))
                .with(ContractExample.request()
                        .input("IN", Shape.of(1, 2), 1f, -1f)
                        .failure("IN: -1.0"));
    }

    private static ContractModel decoupled() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .decoupled(true)
                        .input(input())
                        .output(TensorSpec.of("OUT", DataType.FP32, ANY))
                        .build())
                .with(ContractExample.request()
                        .input("IN", Shape.of(1), 3f)
                        .output("OUT", Shape.of(1), 6f)
                        .response()
                        .output("OUT", Shape.of(1), 6f))
                .withTimeout(Duration.ofMillis(100));
    }

    private static ContractModel stateful() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(input())
                        .output(TensorSpec.of("OUT", DataType.FP32, ANY))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                                .with(StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(1))))
                        .build())
                .with(example(5)
                        .input("SUM_IN", Shape.of(1, 1), 2f)
                        .state("SUM_OUT", ContractExample.floats(Shape.of(1, 1), 7)))
                .withSequence(1, summed(2, 2), summed(3, 5), summed(4, 9))
                .withSequence(2, summed(10, 10), summed(20, 30));
    }

    private static ContractExample summed(float number, float sum) {
        return example(number).state("SUM_OUT", ContractExample.floats(Shape.of(1, 1), sum));
    }

    private void finds(BackendProvider faulty, ContractModel model, CheckedContract.Check check, String text) {
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> check.run(new CheckedContract(faulty, model.withCache(cache))))
                .withMessageContaining(text);
    }

    private void finds(ModelInstance faulty, ContractModel model, CheckedContract.Check check, String text) {
        finds(Doubling.of(faulty), model, check, text);
    }

    @Test
    void testsThatDoNotApplyDoNotExist() throws ReflectiveOperationException {
        Shape pairs = Shape.of(1, 2);
        ModelSettings plain = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, pairs))
                .output(TensorSpec.of("OUT", DataType.FP32, pairs))
                .build();
        BackendContract contract = new CheckedContract(
                Doubling.right(), ContractModel.of(plain).with(example(1, 2)).withCache(cache));
        List<String> absent = new ArrayList<>();
        for (Method method : BackendContract.class.getMethods()) {
            if (method.isAnnotationPresent(Test.class)) {
                method.invoke(contract); // a skipped one throws
            } else if (method.isAnnotationPresent(TestFactory.class)) {
                assertThat((Stream<?>) method.invoke(contract)).isEmpty();
                absent.add(method.getName());
            }
        }

        assertThat(absent).contains("respondsToBatches", "respondsToSequences", "respondsToSlowClients");
    }

    @Nested
    final class OfARightBackend extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return Doubling.right();
        }

        @Override
        protected ContractModel model() {
            return batching();
        }
    }

    @Nested
    final class OfARightDecoupledBackend extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return Doubling.of(Doubling::stream);
        }

        @Override
        protected ContractModel model() {
            return decoupled().withTimeout(Duration.ofSeconds(10));
        }
    }

    @Nested
    final class OfARightBackendWithState extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return Doubling.of(batch -> Doubling.accumulate(batch, 1));
        }

        @Override
        protected ContractModel model() {
            return stateful();
        }
    }

    @Test
    void findsAWrongName() {
        Doubling named = new Doubling("Doubling!", context -> batch -> {});
        finds(named, batching(), BackendContract::namesItself, "name: 'Doubling!'");
    }

    @Test
    void findsAWrongCompletion() {
        finds(
                completing(ModelCompletion.EMPTY.withInput(TensorSpec.of("IN", DataType.INT8, ANY))),
                batching(),
                BackendContract::completesWithoutContradiction,
                "input 'IN': completed as IN INT8");
    }

    @Test
    void findsALimitBelowTheConfiguredBatchSize() {
        finds(
                completing(ModelCompletion.EMPTY.withMaxBatchSizeLimit(1)),
                batching(),
                BackendContract::completesWithoutContradiction,
                "(expected: at most 1)");
    }

    private static BackendProvider completing(ModelCompletion completion) {
        return new BackendProvider() {
            @Override
            public String name() {
                return "wrong";
            }

            @Override
            public Backend create(BackendContext context) {
                return new Backend() {
                    @Override
                    public Optional<ModelCompletion> complete(ModelContext model) {
                        return Optional.of(completion);
                    }

                    @Override
                    public Model load(ModelContext model) {
                        return place -> batch -> {};
                    }
                };
            }
        };
    }

    @Test
    void findsWrongNumbers() {
        finds(
                batch -> Doubling.respond(
                        batch.requests().getFirst(), batch.requests().getFirst().response(), 3),
                batching(),
                BackendContract::respondsToEachRequest,
                "output 'OUT' of response 0: FP32 [1, 2] [3.0, 6.0]"
                        .replace("[1, 2]", Shape.of(1, 2).toString()));
    }

    @Test
    void findsOutputsThatAreNotConfigured() {
        finds(
                batch -> batch.requests().getFirst().response().allocate("MORE_OUT", DataType.FP32, Shape.of(1, 2)),
                batching(),
                BackendContract::respondsToEachRequest,
                "output 'MORE_OUT': not in the configuration");
        finds(
                batch -> batch.requests().getFirst().response().allocate("OUT", DataType.INT32, Shape.of(1, 2)),
                batching(),
                BackendContract::respondsToEachRequest,
                "output 'OUT': INT32 (expected: FP32)");
        finds(
                batch -> batch.requests().getFirst().response().allocate("OUT", DataType.FP32, Shape.of(2, 1, 1)),
                batching(),
                BackendContract::respondsToEachRequest,
                "output 'OUT': shape");
    }

    @Test
    void findsUseOfMemoryOfAnEarlierExecution() {
        AtomicReference<Tensor> kept = new AtomicReference<>();
        finds(
                batch -> {
                    InferenceRequest request = batch.requests().getFirst();
                    Tensor in = request.requireInput("IN");
                    kept.compareAndSet(null, in);
                    kept.get().data().get(Doubling.FLOAT, 0);
                    Doubling.apply(request);
                },
                batching(),
                BackendContract::respondsToEachRequest,
                "execute threw java.lang.IllegalStateException");
    }

    @Test
    void findsChangesOfInputs() {
        finds(
                batch -> {
                    Doubling.apply(batch.requests().getFirst());
                    batch.gather("IN").data().set(Doubling.FLOAT, 0, 9);
                },
                batching(),
                BackendContract::respondsToEachRequest,
                "input 'IN' of request 0: changed");
    }

    @Test
    void findsRequestsOfABatchWithoutResponses() {
        finds(
                batch -> Doubling.apply(batch.requests().getFirst()),
                batching(),
                CheckedContract.where(BackendContract::respondsToBatches),
                "output 'OUT' of response 0: missing");
    }

    @Test
    void findsRaggedInputsTakenForEqualOnes() {
        finds(
                batch -> {
                    long length = batch.requests().getFirst().requireInput("IN").byteSize();
                    for (InferenceRequest request : batch.requests()) {
                        if (request.requireInput("IN").byteSize() == length) {
                            Doubling.apply(request);
                        }
                    }
                },
                batching(),
                CheckedContract.where(BackendContract::respondsToRaggedBatches),
                "missing");
    }

    @Test
    void findsOptionalInputsThatAreRequired() {
        finds(
                batch -> {
                    batch.requests().getFirst().requireInput("MORE");
                    Doubling.apply(batch.requests().getFirst());
                },
                batching(),
                CheckedContract.where(BackendContract::respondsWithoutOptionalInputs),
                "MORE");
    }

    @Test
    void findsMissingInputsThatAreABug() {
        finds(
                batch -> {
                    Tensor in = batch.requests().getFirst().input("IN").orElseThrow();
                    assertThat(in.byteSize()).isPositive();
                    Doubling.apply(batch.requests().getFirst());
                },
                batching(),
                BackendContract::survivesMissingInputs,
                "execute threw java.util.NoSuchElementException");
    }

    @Test
    void findsAnErrorThatFailsTheWholeBatch() {
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        Doubling.respond(request, request.response(), 2);
                    }
                },
                batching(),
                CheckedContract.where(BackendContract::failsOneRequestOfABatchAlone),
                "request failed (expected: a response)");
    }

    @Test
    void findsNullRequestsThatFail() {
        finds(
                batch -> {
                    Doubling.accumulate(batch, 1);
                    for (InferenceRequest request : batch.requests()) {
                        if (request.isNullRequest()) {
                            request.fail(new BackendException(ErrorCode.INTERNAL, "no request"));
                        }
                    }
                },
                stateful(),
                CheckedContract.where(BackendContract::leavesNullRequestsAlone),
                "null request failed");
    }

    @Test
    void findsWrongStates() {
        finds(
                batch -> Doubling.accumulate(batch, 2),
                stateful(),
                BackendContract::respondsToEachRequest,
                "state 'SUM_OUT' of response 0");
    }

    @Test
    void findsSendersThatAreNeverEnded() {
        finds(
                batch -> batch.requests().getFirst().sender().newResponse(),
                decoupled(),
                BackendContract::respondsToEachRequest,
                "request 0: a sender of a request was not ended");
        finds(
                batch -> {
                    if (!batch.requests().getFirst().sender().isCancelled()) {
                        Doubling.stream(batch);
                    }
                },
                decoupled(),
                BackendContract::endsCancelledRequests,
                "request 0: a sender of a request was not ended");
    }

    @Test
    void findsLeasesThatAreNeverEnded() {
        finds(
                batch -> {
                    batch.requests().forEach(InferenceRequest::leaseInputs);
                    Doubling.stream(batch);
                },
                decoupled(),
                BackendContract::respondsToEachRequest,
                "request 0: a lease on the inputs of a request was not ended");
    }

    @Test
    void findsMissingResponses() {
        finds(
                batch -> batch.requests().getFirst().sender().complete(),
                decoupled(),
                BackendContract::respondsToEachRequest,
                "responses: 0 (expected: 2)");
    }

    @Test
    void findsDeferredExecutionsThatAreNeverCompleted() {
        finds(
                batch -> {
                    batch.defer();
                    Doubling.apply(batch.requests().getFirst());
                },
                batching().withTimeout(Duration.ofMillis(20)),
                BackendContract::respondsToEachRequest,
                "deferred execution: open after PT0.02S (expected: complete)");
    }

    @Test
    void findsScratchMemoryThatIsLeft() {
        finds(
                new Doubling("doubling", BackendContractTest::leakingScratch),
                batching(),
                BackendContract::survivesExhaustedMemory,
                "buffers not closed: 1");
    }

    /** Leaves its scratch memory if there is none for the output. */
    private static ModelInstance leakingScratch(InstanceContext place) {
        return batch -> {
            var scratch = place.allocate(MemoryPlace.HOST, 64);
            InferenceRequest request = batch.requests().getFirst();
            Doubling.respond(request, request.response(), 2);
            scratch.close();
        };
    }

    @Test
    void findsStateThatInstancesShare() {
        AtomicReference<Float> shared = new AtomicReference<>(0f);
        CyclicBarrier both = new CyclicBarrier(2);
        finds(
                batch -> {
                    InferenceRequest request = batch.requests().getFirst();
                    Tensor in = request.requireInput("IN");
                    shared.set(in.data().get(Doubling.FLOAT, 0));
                    meet(both);
                    Tensor out = request.response().allocate("OUT", DataType.FP32, in.shape());
                    out.data().set(Doubling.FLOAT, 0, 2 * shared.get());
                },
                ContractModel.of(batching().settings()).with(example(1)).with(example(2)),
                BackendContract::executesInstancesAtTheSameTime,
                "instances at the same time");
    }

    private static void meet(CyclicBarrier both) {
        try {
            both.await(1, TimeUnit.SECONDS);
        } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
            // The other thread has failed: that is what the test is about.
        }
    }

    @Test
    void findsModelsThatStayReachable() {
        List<Object> kept = new ArrayList<>();
        BackendProvider provider = new BackendProvider() {
            @Override
            public String name() {
                return "kept";
            }

            @Override
            public Backend create(BackendContext context) {
                return model -> {
                    Model loaded =
                            place -> batch -> Doubling.apply(batch.requests().getFirst());
                    Model own = place -> loaded.newInstance(place);
                    kept.add(own);
                    return own;
                };
            }
        };
        finds(provider, batching(), BackendContract::leavesNothingBehindAfterLoads, "models reachable after 60 loads");
        assertThat(kept).hasSizeGreaterThanOrEqualTo(60);
    }

    @Test
    void findsThreadsThatAreLeft() {
        CountDownLatch end = new CountDownLatch(1);
        Doubling faulty = new Doubling("threads", place -> {
            Thread.ofPlatform().daemon().start(() -> {
                try {
                    end.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            return batch -> Doubling.apply(batch.requests().getFirst());
        });
        finds(faulty, batching(), BackendContract::leavesNothingBehindAfterLoads, "more threads");
        end.countDown();
    }

    @Test
    void findsFilesThatAreLeftOpen() throws IOException {
        Path file = Files.createFile(cache.resolve("weights"));
        List<InputStream> left = Collections.synchronizedList(new ArrayList<>());
        Doubling faulty = new Doubling("files", place -> {
            try {
                left.add(Files.newInputStream(file));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return batch -> Doubling.apply(batch.requests().getFirst());
        });
        try {
            finds(faulty, batching(), BackendContract::leavesNothingBehindAfterLoads, "more open files");
        } finally {
            for (InputStream stream : left) {
                stream.close();
            }
        }
    }

    @Test
    void findsNativeMemoryThatIsLeft() {
        try (Arena kept = Arena.ofShared()) {
            finds(
                    leaking(kept, LEAK),
                    batching(),
                    BackendContract::leavesNothingBehindAfterLoads,
                    "more bytes of native memory");
        }
    }

    @Test
    void findsNativeMemoryThatIsLeftLittleByLittle() {
        try (Arena kept = Arena.ofShared()) {
            ContractModel model = batching();
            LoadCycles cycles = new LoadCycles(
                    leaking(kept, SLOW_LEAK),
                    model.withCache(cache),
                    model.examples().getFirst(),
                    ResourceWatch::now);
            assertThatExceptionOfType(AssertionError.class)
                    .isThrownBy(() -> cycles.run(MANY_LOADS))
                    .withMessageContaining("more bytes of native memory");
        }
    }

    private static Doubling leaking(Arena kept, int bytes) {
        return new Doubling("memory", place -> {
            kept.allocate(bytes);
            return batch -> Doubling.apply(batch.requests().getFirst());
        });
    }
}
