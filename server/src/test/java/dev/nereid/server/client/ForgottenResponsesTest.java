package dev.nereid.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that responses which a plugin does not close are released, but never while something of them can be read. */
@Tag("slow")
@Timeout(120)
final class ForgottenResponsesTest {
    /** Rounds in which nothing may be released. */
    private static final int ROUNDS = 5;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server =
            new FakeInferenceServer(memory).add(FakeModel.identity("echo", DataType.FP32, 0, 4));

    private final LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {});
    private final ResponseHolder holder =
            live.holders().add(new ModelRef("space/caller", 3), "caller", "tokens", Runnable::run);
    private final ModelClient client = client();

    /** An observer that keeps the response, as one does that is referred to by its own request. */
    private static final class Keeper implements ModelResponseObserver {
        private final List<ModelResponse> kept = new ArrayList<>();

        @Override
        public void onResponse(ModelResponse response) {
            kept.add(response);
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(BackendException error) {
            throw new AssertionError(error);
        }
    }

    @Test
    void anUnreachableResponseIsReleasedAndReported() throws InterruptedException {
        forget();

        awaitForgotten();

        assertThat(holder.size()).isZero();
        assertThat(live.holders().forgotten())
                .containsExactly(
                        "model 'caller', version 3, plugin 'tokens': a response of model 'echo' was not closed, and"
                                + " the server released it (expected: ModelResponse.close, such as by try-with-resources)");
    }

    @Test
    void moreOfOneLoadAreReportedOnce() throws InterruptedException {
        for (int i = 0; i < 200; i++) {
            forget();
        }

        awaitForgotten();

        assertThat(live.holders().forgotten()).hasSizeBetween(1, 2); // one without a place, then the first with one
    }

    @Test
    void aResponseThatItsObserverKeepsIsReleasedWithTheObserver() throws InterruptedException {
        forgetKept();

        awaitForgotten();

        assertThat(live.holders().forgotten()).hasSize(1);
    }

    @Test
    void aReachableResponseStays() throws InterruptedException {
        ModelResponse response = send();
        collect();

        assertThat(open()).isEqualTo(1);
        assertThat(response.requireOutput("OUTPUT0").floats()).containsExactly(7, 8, 9, 10);
        response.close();
        assertThat(open()).isZero();
        collect();
        assertThat(live.holders().forgotten()).isEmpty();
    }

    @Test
    void aResponseStaysWhileATensorOfItIsReachable() throws InterruptedException {
        List<Tensor> kept = new ArrayList<>(List.of(send().requireOutput("OUTPUT0")));
        collect();

        assertThat(open()).isEqualTo(1);
        assertThat(kept.getFirst().floats()).containsExactly(7, 8, 9, 10);
        kept.clear();
        awaitCollected(() -> open() == 0);
    }

    @Test
    void aResponseStaysWhileAPartOfItsMemoryIsReachable() throws InterruptedException {
        List<MemorySegment> kept = new ArrayList<>(List.of(
                send().requireOutput("OUTPUT0").withShape(Shape.of(2, 2)).data().asSlice(4, 8)));
        collect();

        assertThat(open()).isEqualTo(1);
        assertThat(kept.getFirst().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0)).isEqualTo(8);
        kept.clear();
        awaitCollected(() -> open() == 0);
    }

    @Test
    void aLeasedOutputOutlivesAForgottenResponse() throws InterruptedException {
        Runnable lease = send().lease("OUTPUT0");
        awaitCollected(() -> holder.size() == 1 && open() == 1); // the lease alone

        lease.run();
        assertThat(open()).isZero();
        assertThat(holder.size()).isZero();
        collect();
        assertThat(live.holders().forgotten()).hasSize(1); // the response
    }

    @Test
    void aForgottenLeaseIsEndedAndReported() throws InterruptedException {
        forgetLease();

        awaitForgotten();

        assertThat(holder.size()).isZero();
        assertThat(live.holders().forgotten())
                .containsExactly(
                        "model 'caller', version 3, plugin 'tokens': a lease on an output of model 'echo' was not"
                                + " ended, and the server ended it (expected: to run what ModelResponse.lease returned)");
    }

    @Test
    void aForgottenLeaseStaysWhileATensorIsReachable() throws InterruptedException {
        List<Tensor> kept = new ArrayList<>(List.of(forgetLease()));
        collect();

        assertThat(open()).isEqualTo(1);
        assertThat(kept.getFirst().floats()).containsExactly(7, 8, 9, 10);
        kept.clear();
        awaitCollected(() -> open() == 0);
    }

    @Test
    void aLeaseIsNamedUntilTheCloseOfTheModelEndsIt() throws InterruptedException {
        Runnable lease;
        try (ModelResponse response = send()) {
            lease = response.lease("OUTPUT0");
        }
        Set<ModelRef> sources = Set.of(new ModelRef("echo", 1));
        assertThat(live.holders().reason(sources)).contains("1 held by model 'caller'");
        assertThat(live.holders().requestsOf(new ModelRef("echo", 1))).isEqualTo(1);

        holder.releaseAll();
        assertThat(open()).as("what may be part of a response of the model").isEqualTo(1);
        holder.close();

        assertThat(open()).isZero();
        assertThat(live.holders().reason(sources)).isEmpty();
        assertThat(live.holders().forgotten())
                .containsExactly(
                        "model 'caller', version 3, plugin 'tokens': 1 lease on an output of model 'echo' was not"
                                + " ended, and the server ended it (expected: to run what ModelResponse.lease returned)");
        lease.run();
    }

    @Test
    void theCloseOfTheModelReportsHowManyWereForgotten() throws InterruptedException {
        for (int i = 0; i < 5; i++) {
            forget();
            forgetLease();
        }
        awaitCollected(() -> open() == 0);

        holder.close();
        holder.close();

        String caller = "model 'caller', version 3, plugin 'tokens': ";
        assertThat(live.holders().forgotten())
                .filteredOn(sentence -> sentence.contains("in all"))
                .containsExactly(
                        caller + "5 responses of models in all were not closed, and the server released them"
                                + " (expected: ModelResponse.close, such as by try-with-resources)",
                        caller + "5 leases on outputs of models in all were not ended, and the server ended them"
                                + " (expected: to run what ModelResponse.lease returned)");
    }

    @Test
    void theCloseOfTheModelReleasesWhatIsStillHeld() throws InterruptedException {
        List<ModelResponse> held = List.of(send(), send());
        assertThat(live.holders().reason(Set.of(new ModelRef("echo", 1))))
                .isEqualTo(
                        "waits for responses that are not closed: 2 held by model 'caller', version 3, plugin 'tokens'");

        holder.close();

        assertThat(open()).isZero();
        assertThat(live.holders().reason(Set.of(new ModelRef("echo", 1)))).isEmpty();
        assertThat(live.holders().forgotten())
                .containsExactly(
                        "model 'caller', version 3, plugin 'tokens': 2 responses of model 'echo' were not closed,"
                                + " and the server released them (expected: ModelResponse.close, such as by try-with-resources)");
        held.forEach(ModelResponse::close);
    }

    @Test
    void aClosedModelGetsNoResponse() {
        holder.close();

        assertThatThrownBy(this::send)
                .isInstanceOfSatisfying(
                        BackendException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("response of model 'echo': the model that requested it is closed");
        assertThat(open()).isZero();
    }

    private void forget() throws InterruptedException {
        assertThat(send().outputs()).containsExactly("OUTPUT0");
    }

    /** Closes a response, and forgets a lease; returns the output. */
    private Tensor forgetLease() throws InterruptedException {
        try (ModelResponse response = send()) {
            assertThat(response.lease("OUTPUT0")).isNotNull();
            return response.requireOutput("OUTPUT0");
        }
    }

    private void forgetKept() {
        Keeper keeper = new Keeper();
        client.request("echo").input("INPUT0", input()).send(keeper);
        assertThat(keeper.kept).hasSize(1);
    }

    private ModelResponse send() throws InterruptedException {
        return client.request("echo").input("INPUT0", input()).sendAndWait();
    }

    private static Tensor input() {
        return Tensor.of(DataType.FP32, Shape.of(4), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, 7, 8, 9, 10));
    }

    /** Returns how many responses and leases the fake server knows as open. */
    private int open() {
        return server.requests().stream()
                .mapToInt(ReceivedRequest::openResponses)
                .sum();
    }

    /** Collects what is not reachable. */
    private static void collect() {
        for (int i = 0; i < ROUNDS; i++) {
            System.gc();
        }
    }

    /** Waits until all responses are released, and one is reported. */
    private void awaitForgotten() {
        awaitCollected(() -> open() == 0 && !live.holders().forgotten().isEmpty());
    }

    private static void awaitCollected(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            assertThat(Thread.currentThread().isInterrupted()).as("time out").isFalse();
            System.gc();
            Thread.onSpinWait();
        }
    }

    private ModelClient client() {
        ModelLoadWatch watch = new ModelLoadWatch(Supervision.NONE, System::nanoTime);
        MemoryRefresh refresh = new MemoryRefresh(live, Runnable::run, System::nanoTime, FatalErrorHandler.NONE);
        ModelClients clients = new ModelClients(new ServedModels(live, watch, refresh), new ModelDependencies());
        clients.serve(server);
        return clients.of(holder);
    }
}
