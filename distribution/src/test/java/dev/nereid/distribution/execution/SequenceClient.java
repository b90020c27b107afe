package dev.nereid.distribution.execution;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.TensorBytes;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * A client of an accumulator that has many sequences at a time on one connection. Each has a gRPC stream, since responses
 * of a stream are ordered and would wait for those of sequences that have no slot yet, and one to three requests in
 * flight. The client checks that each answer is the sum of all values of its sequence up to there. It leaves some
 * sequences half way: it cancels the stream and starts the sequence again, with the same id. Some clients close the
 * connection half way, and start what is not at its end again, on another one. Confined to one thread.
 */
final class SequenceClient implements Callable<Void> {
    private static final long TIMEOUT_SECONDS = 30;

    /** Which of the sequences is left half way, and which of the clients closes its connection: one of so many. */
    private static final int LEAVES = 16;

    /** The difference of the ids of a sequence on two connections, since the server may still read the earlier one. */
    private static final long OTHER_CONNECTION = 1_000_000;

    /**
     * The work of all clients.
     *
     * @param model the model
     * @param sequences the sequences of each client
     * @param requests the requests of each sequence
     * @param reloads whether the server may end sequences without an answer, which are then started again
     * @param ends whether the server ends meanwhile
     */
    record Load(String model, int sequences, int requests, boolean reloads, boolean ends) {}

    /** The counts of answers, and of sequences that have ended early, for all clients. */
    record Counts(AtomicInteger answered, AtomicInteger left, AtomicInteger endedByServer) {
        Counts() {
            this(new AtomicInteger(), new AtomicInteger(), new AtomicInteger());
        }

        @Override
        public String toString() {
            return answered + " answers, " + left + " sequences left half way, " + endedByServer
                    + " sequences ended by the server";
        }
    }

    /** A message of a stream, or its end. */
    private record Event(Run run, Object message) {}

    /** One attempt to run a sequence to its end. */
    private final class Run implements StreamObserver<ModelStreamInferResponse> {
        private final long id;
        private final int attempt;
        private final ClientCallStreamObserver<ModelInferRequest> stream;
        private int sent;
        private int responses;
        private int sum;
        private boolean failed;

        Run(long id, int attempt) {
            this.id = id;
            this.attempt = attempt;
            stream = (ClientCallStreamObserver<ModelInferRequest>)
                    GRPCInferenceServiceGrpc.newStub(channel).modelStreamInfer(this);
        }

        @Override
        public void onNext(ModelStreamInferResponse response) {
            events.add(new Event(this, response));
        }

        @Override
        public void onError(Throwable failure) {
            events.add(new Event(this, failure));
        }

        @Override
        public void onCompleted() {
            events.add(new Event(this, "completed"));
        }

        private int value(int index) {
            return (int) (id % 9973) * 31 + attempt * 7 + index * index; // sums of them are exact in FP32
        }

        private String name(int index) {
            return id + ":" + attempt + ":" + index;
        }

        /** Sends requests until as many are in flight as the sequence has at a time. */
        void fill() {
            long together = 1 + id % 3;
            while (sent < load.requests() && sent - responses < together) {
                int index = sent++;
                stream.onNext(ClientRequest.of(load.model())
                        .withId(name(index))
                        .input("INPUT", "FP32", TensorBytes.floats(value(index)), 1, 1)
                        .inSequence(id, index == 0, index == load.requests() - 1)
                        .overGrpc());
            }
        }

        boolean isDone() {
            return responses == load.requests() || (failed && responses == sent);
        }

        boolean leavesNow() {
            return attempt == 0 && id % LEAVES == client % LEAVES && responses == load.requests() / 2;
        }

        @Override
        public String toString() {
            return name(responses) + " of " + sent + (isDone() ? " done" : "");
        }
    }

    private final Supplier<ManagedChannel> connect;
    private final Load load;
    private final int client;
    private final Counts counts;
    private final BlockingQueue<Event> events = new LinkedBlockingQueue<>();

    /** The runs whose streams are open. */
    private final Set<Run> open = new HashSet<>();

    private ManagedChannel channel;
    private int answered;
    private boolean reconnected;

    SequenceClient(Supplier<ManagedChannel> connect, Load load, int client, Counts counts) {
        this.connect = connect;
        this.load = load;
        this.client = client;
        this.counts = counts;
        this.channel = connect.get();
    }

    @Override
    public Void call() throws InterruptedException {
        try {
            for (int i = 0; i < load.sequences(); i++) {
                start(1 + (long) client * load.sequences() + i, 0);
            }
            while (!open.isEmpty()) {
                Event event = events.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                check(event != null, "no response within " + TIMEOUT_SECONDS + " s to " + open);
                if (open.contains(event.run())) { // not to one that was left
                    take(event.run(), event.message());
                }
                if (!reconnected && client % LEAVES == 1 && answered >= load.sequences() * load.requests() / 2) {
                    reconnect();
                }
            }
            return null;
        } finally {
            channel.shutdownNow();
        }
    }

    private void start(long id, int attempt) {
        Run run = new Run(id, attempt);
        open.add(run);
        run.fill();
    }

    private void take(Run run, Object message) {
        if (!(message instanceof ModelStreamInferResponse response)) {
            boolean expected = message.equals("completed") ? run.isDone() : isUnavailable(message);
            check(expected, "end of the stream at " + run + ": " + message);
            open.remove(run);
            return;
        }
        int index = run.responses++;
        String id = response.getInferResponse().getId();
        check(id.equals(run.name(index)), "response to " + id + " (expected: to " + run.name(index) + ")");
        if (response.getErrorMessage().isEmpty()) {
            answered(run, index, response.getInferResponse());
        } else {
            failed(run, index, response.getErrorMessage());
        }
        if (run.isDone()) {
            run.stream.onCompleted();
        }
    }

    private void answered(Run run, int index, ModelInferResponse response) {
        check(!run.failed, "answer to " + run.name(index) + " after the end of the sequence");
        run.sum += run.value(index);
        int sum = (int) TensorBytes.toFloats(response.getRawOutputContents(0).toByteArray())[0];
        check(sum == run.sum, "answer to " + run.name(index) + ": " + sum + " (expected: " + run.sum + ")");
        answered++;
        counts.answered().incrementAndGet();
        if (run.leavesNow()) {
            leave(run);
        } else {
            run.fill();
        }
    }

    /** The server has ended a sequence. It starts again, unless the server ends. */
    private void failed(Run run, int index, String error) {
        boolean stopping = error.startsWith("Server is stopping")
                || error.startsWith("GRPC server is shutting down")
                || error.equals("Server not ready");
        boolean expected = (load.ends() && stopping)
                || (load.reloads() && (stopping || error.contains(" must specify the START flag ")));
        check(expected, "error of " + run.name(index) + ": " + error);
        if (!run.failed) {
            run.failed = true;
            counts.endedByServer().incrementAndGet();
            if (!load.ends()) {
                start(run.id, run.attempt + 1);
            }
        }
    }

    /** Cancels the requests of a sequence, and starts it again. */
    private void leave(Run run) {
        counts.left().incrementAndGet();
        open.remove(run);
        run.stream.cancel("leaves", null);
        start(run.id, run.attempt + 1);
    }

    /** Cancels all requests, and starts the sequences again. */
    private void reconnect() {
        reconnected = true;
        channel.shutdownNow();
        channel = connect.get();
        // What has failed was started again already, and two runs with one id would be one sequence.
        List<Run> unfinished =
                open.stream().filter(run -> !run.isDone() && !run.failed).toList();
        open.clear();
        counts.left().addAndGet(unfinished.size());
        unfinished.forEach(run -> start(run.id + OTHER_CONNECTION, run.attempt + 1));
    }

    private boolean isUnavailable(Object message) {
        return load.ends()
                && message instanceof StatusRuntimeException failure
                && failure.getStatus().getCode() == Status.Code.UNAVAILABLE;
    }

    private void check(boolean holds, String problem) {
        if (!holds) {
            throw new AssertionError("client " + client + ": " + problem);
        }
    }
}
