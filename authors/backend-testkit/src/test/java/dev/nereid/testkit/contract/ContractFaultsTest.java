package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Deliberate faults of ownership, sequences, outputs and life cycle are each found by one test of the contract. */
final class ContractFaultsTest {
    private static final Shape ONE = Shape.of(1, 1);
    private static final TensorSpec IN = TensorSpec.of("IN", DataType.FP32, Shape.of(1));
    private static final TensorSpec OUT = TensorSpec.of("OUT", DataType.FP32, Shape.of(1));

    @TempDir
    private Path cache;

    private void finds(BackendProvider faulty, ContractModel model, CheckedContract.Check check, String text) {
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> check.run(new CheckedContract(faulty, model.withCache(cache))))
                .withMessageContaining(text);
    }

    private void finds(ModelInstance faulty, ContractModel model, CheckedContract.Check check, String text) {
        finds(Doubling.of(faulty), model, check, text);
    }

    private static ContractExample doubled(float number) {
        return ContractExample.request().input("IN", ONE, number).output("OUT", ONE, 2 * number);
    }

    private static ContractModel batching() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(IN)
                        .output(OUT)
                        .build())
                .with(doubled(1))
                .with(doubled(2))
                .with(ContractExample.request().input("IN", ONE, -1f).failure("IN: -1.0"));
    }

    private static ContractModel twoOutputs() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(IN)
                        .output(OUT)
                        .output(TensorSpec.of("COPY", DataType.FP32, Shape.of(1)))
                        .build())
                .with(doubled(1).output("COPY", ONE, 1f));
    }

    private static ContractModel decoupled() {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .decoupled(true)
                        .input(IN)
                        .output(OUT)
                        .build())
                .with(ContractExample.request()
                        .input("IN", Shape.of(1), 3f)
                        .output("OUT", Shape.of(1), 6f)
                        .response()
                        .output("OUT", Shape.of(1), 6f))
                .withTimeout(Duration.ofMillis(100));
    }

    /** Sums of sequences, kept by the backend; the READY of a null request is -1. */
    private static ContractModel sums(SequenceBatching.Strategy strategy) {
        return ContractModel.of(ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(IN)
                        .output(OUT)
                        .sequenceBatching(SequenceBatching.of(strategy, Duration.ofSeconds(1))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.FP32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "ID", DataType.UINT64)))
                        .build())
                .withControlValues("READY", ContractExample.floats(ONE, -1), ContractExample.floats(ONE, 1))
                .with(summed(5, 5).sequence(new Sequence(new Sequence.Id.Numeric(3), true, true)))
                .withSequence(1, summed(1, 1), summed(2, 3), summed(3, 6))
                .withSequence(2, summed(10, 10), summed(20, 30));
    }

    private static ContractExample summed(float number, float sum) {
        return ContractExample.request().input("IN", ONE, number).output("OUT", ONE, sum);
    }

    private static float number(InferenceRequest request, String input) {
        return request.requireInput(input).data().get(Doubling.FLOAT, 0);
    }

    private static void respond(InferenceRequest request, String output, float number) {
        request.response().allocate(output, DataType.FP32, ONE).data().set(Doubling.FLOAT, 0, number);
    }

    /** A right backend of sums by id. */
    private record Sums(Map<Sequence.Id, Float> byId) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            for (InferenceRequest request : batch.requests()) {
                if (number(request, "READY") > 0) {
                    Sequence position = request.sequence().orElseThrow();
                    float before = position.start() ? 0 : byId.getOrDefault(position.id(), 0f);
                    byId.put(position.id(), before + number(request, "IN"));
                    respond(request, "OUT", byId.get(position.id()));
                }
            }
        }

        @Override
        public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
            byId.remove(id);
        }
    }

    @Nested
    final class OfRightSums extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return new Doubling("sums", place -> new Sums(new HashMap<>()));
        }

        @Override
        protected ContractModel model() {
            return sums(SequenceBatching.Strategy.OLDEST);
        }
    }

    @Nested
    final class OfRightSumsByPlace extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return new Doubling("sums", place -> new Sums(new HashMap<>()));
        }

        @Override
        protected ContractModel model() {
            return sums(SequenceBatching.Strategy.DIRECT);
        }
    }

    @Nested
    final class OfTwoOutputs extends BackendContract {
        @Override
        protected BackendProvider provider() {
            return Doubling.of(batch -> {
                for (InferenceRequest request : batch.requests()) {
                    Doubling.apply(request);
                    request.response().put("COPY", request.requireInput("IN"));
                }
            });
        }

        @Override
        protected ContractModel model() {
            return twoOutputs();
        }
    }

    @Test
    void findsOutputsThatAreMissing() {
        finds(
                batch -> Doubling.apply(batch.requests().getFirst()),
                twoOutputs(),
                BackendContract::respondsToEachRequest,
                "output 'COPY' of response 0: missing (expected: all requested outputs)");
    }

    @Test
    void findsOutputsThatDependOnOthers() {
        finds(
                batch -> {
                    InferenceRequest request = batch.requests().getFirst();
                    if (request.requestedOutputs().contains("OUT")) {
                        Doubling.apply(request);
                        request.response().put("COPY", request.requireInput("IN"));
                    }
                },
                twoOutputs(),
                CheckedContract.where(BackendContract::respondsWithRequestedOutputs),
                "output 'COPY' of response 0: missing");
    }

    @Test
    void findsOutputsInMemoryThatIsUsedAgain() {
        MemorySegment shared = Arena.ofAuto().allocate(Float.BYTES);
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        shared.set(Doubling.FLOAT, 0, 2 * number(request, "IN"));
                        request.response().put("OUT", Tensor.of(DataType.FP32, ONE, shared), () -> {});
                    }
                },
                batchingWithoutFailure(),
                BackendContract::keepsOutputsUntilTheirRelease,
                "output 'OUT': changed after the execution");
    }

    private static ContractModel batchingWithoutFailure() {
        return ContractModel.of(batching().settings()).with(doubled(1)).with(doubled(2));
    }

    @Test
    void findsInputsThatAreReadInTheNextExecution() {
        AtomicReference<Tensor> last = new AtomicReference<>();
        finds(
                batch -> {
                    InferenceRequest request = batch.requests().getFirst();
                    Tensor in = last.getAndSet(request.requireInput("IN"));
                    float former = in == null ? 0 : in.data().get(Doubling.FLOAT, 0);
                    respond(request, "OUT", former < -1e6 ? former : 2 * number(request, "IN"));
                },
                batchingWithoutFailure(),
                BackendContract::keepsOutputsUntilTheirRelease,
                "output 'OUT' of response 0");
    }

    @Test
    void findsResponsesThatSlowClientsDoNotGet() {
        finds(
                batch -> {
                    ResponseSender sender = batch.requests().getFirst().sender();
                    if (sender.isReady()) {
                        Doubling.stream(batch);
                    } else {
                        sender.complete();
                    }
                },
                decoupled(),
                CheckedContract.where(BackendContract::respondsToSlowClients),
                "responses: 0 (expected: 2)");
    }

    @Test
    void findsResponsesThatAreMissingBeforeAnError() {
        ContractModel model = ContractModel.of(decoupled().settings())
                .with(ContractExample.request().input("IN", Shape.of(1), 0f))
                .with(ContractExample.request()
                        .input("IN", Shape.of(1), 3f)
                        .output("OUT", Shape.of(1), 6f)
                        .failure("then an error"));
        finds(
                batch -> {
                    InferenceRequest request = batch.requests().getFirst();
                    if (number(request, "IN") > 0) {
                        request.sender().fail(new BackendException(ErrorCode.INTERNAL, "then an error"));
                    } else {
                        request.sender().complete();
                    }
                },
                model,
                BackendContract::respondsToEachRequest,
                "responses: 0 (expected: 1)");
    }

    @Test
    void findsErrorsThatEndTheRestOfABatch() {
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        Doubling.apply(request);
                        if (number(request, "IN") < 0) {
                            return;
                        }
                    }
                },
                batching(),
                CheckedContract.where(BackendContract::failsOneRequestOfABatchAlone),
                "output 'OUT' of response 0: missing");
    }

    @Test
    void findsSequencesWithoutMemory() {
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        respond(request, "OUT", number(request, "IN"));
                    }
                },
                sums(SequenceBatching.Strategy.OLDEST),
                CheckedContract.where(BackendContract::respondsToSequences),
                "request 1 of sequence Numeric[value=1]: output 'OUT' of response 0: FP32");
    }

    @Test
    void findsSequencesThatAreMixedUp() {
        AtomicReference<Float> sum = new AtomicReference<>(0f);
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        boolean start = request.sequence().orElseThrow().start();
                        sum.set((start ? 0 : sum.get()) + number(request, "IN"));
                        respond(request, "OUT", sum.get());
                    }
                },
                sums(SequenceBatching.Strategy.OLDEST),
                CheckedContract.where(BackendContract::keepsSequencesApart),
                "of sequence Numeric[value=1]: output 'OUT'");
    }

    @Test
    void findsSequencesThatGoOnAfterTheirEnd() {
        Map<Sequence.Id, Float> sums = new HashMap<>();
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        Sequence position = request.sequence().orElseThrow();
                        float sum = sums.merge(position.id(), number(request, "IN"), Float::sum);
                        respond(request, "OUT", sum);
                        if (position.end()) {
                            sums.remove(position.id());
                        }
                    }
                },
                sums(SequenceBatching.Strategy.OLDEST),
                CheckedContract.where(BackendContract::beginsSequencesAnew),
                "request 0 of sequence Numeric[value=1]: output 'OUT' of response 0");
    }

    @Test
    void findsNullRequestsThatAreTakenForOthersByTheirControlInput() {
        finds(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        if (number(request, "READY") != 0) {
                            respond(request, "OUT", number(request, "IN"));
                            if (number(request, "IN") == 0) {
                                request.fail(new BackendException(ErrorCode.INVALID_ARGUMENT, "IN: 0"));
                            }
                        }
                    }
                },
                sums(SequenceBatching.Strategy.DIRECT),
                CheckedContract.where(BackendContract::leavesNullRequestsAlone),
                "null request failed");
    }

    @Test
    void findsChangesOfTheContextClassLoader() throws Exception {
        // The faults stay on threads of their own.
        onThreadOfItsOwn(() -> finds(
                new Doubling("doubling", place -> {
                    Thread.currentThread().setContextClassLoader(new URLClassLoader(new URL[0]));
                    return batch -> {};
                }),
                batching(),
                BackendContract::respondsToEachRequest,
                "context class loader after Model.newInstance"));
        onThreadOfItsOwn(() -> finds(
                batch -> {
                    Doubling.apply(batch.requests().getFirst());
                    Thread.currentThread().setContextClassLoader(new URLClassLoader(new URL[0]));
                },
                batching(),
                BackendContract::respondsToEachRequest,
                "context class loader after ModelInstance.execute"));
    }

    private static void onThreadOfItsOwn(Runnable test)
            throws InterruptedException, ExecutionException, TimeoutException {
        FutureTask<Boolean> task = new FutureTask<>(test, true);
        Thread.ofPlatform().daemon().start(task);
        assertThat(task.get(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void findsASingleThreadThatIsLeft() {
        CountDownLatch end = new CountDownLatch(1);
        AtomicBoolean started = new AtomicBoolean();
        Doubling faulty = new Doubling("threads", place -> {
            if (started.compareAndSet(false, true)) {
                Thread.ofPlatform().name("left").daemon().start(() -> awaitQuietly(end));
            }
            return batch -> Doubling.apply(batch.requests().getFirst());
        });
        finds(
                faulty,
                batching().withTimeout(Duration.ofMillis(50)),
                BackendContract::endsItsThreads,
                "threads alive after Backend.close: [left]");
        end.countDown();
    }

    private static void awaitQuietly(CountDownLatch end) {
        try {
            end.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void findsInstancesThatCloseWhatTheyShare() {
        List<AtomicBoolean> resources = new ArrayList<>();
        BackendProvider faulty = new BackendProvider() {
            @Override
            public String name() {
                return "sharing";
            }

            @Override
            public Backend create(BackendContext context) {
                return model -> {
                    AtomicBoolean closed = new AtomicBoolean();
                    resources.add(closed);
                    return new SharingModel(closed);
                };
            }
        };
        finds(faulty, batching(), BackendContract::replacesInstances, "resource: closed");
        assertThat(resources).hasSize(1);
    }

    /** A model whose instances close what all of them use. */
    private record SharingModel(AtomicBoolean closed) implements Model {
        @Override
        public ModelInstance newInstance(InstanceContext place) {
            return new ModelInstance() {
                @Override
                public void execute(Batch batch) {
                    if (closed.get()) {
                        throw new BackendException(ErrorCode.INTERNAL, "resource: closed (expected: open)");
                    }
                    Doubling.apply(batch.requests().getFirst());
                }

                @Override
                public void close() {
                    closed.set(true);
                }
            };
        }
    }
}
