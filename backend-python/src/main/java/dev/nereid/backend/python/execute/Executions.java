package dev.nereid.backend.python.execute;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.memory.SharedMemory;
import dev.nereid.backend.python.process.Worker;
import dev.nereid.backend.python.process.WorkerEnd;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The executions of one process, and the requests that it has. Each request ends once: by a result, a response, an
 * error, or the end of the process. A later frame for it only releases its memory.
 */
public final class Executions {
    private static final int FAILED = 1;
    private static final int GOES_ON = 2;

    private final Worker worker;
    private final SharedMemory memory;
    private final ModelTensors tensors;
    private final boolean decoupled;
    private final String instance;
    private final BiConsumer<String, String> errors;
    private final ExecuteEncoder encoder;
    private final Map<Long, OpenRequest> detached = new ConcurrentHashMap<>();
    private long lastHandle;
    private volatile @Nullable Execution current;

    /** The error of requests that are detached from now on: the process has ended. */
    private volatile @Nullable BackendException endFailure;

    /**
     * Creates the executions.
     *
     * @param inlineLimit the size in bytes up to which inputs are part of the frame
     * @param errors logs the text of an error, and its traceback or an empty text
     */
    public Executions(
            String instance,
            Worker worker,
            SharedMemory memory,
            ModelTensors tensors,
            boolean decoupled,
            int inlineLimit,
            BiConsumer<String, String> errors) {
        this.instance = instance;
        this.worker = worker;
        this.memory = memory;
        this.tensors = tensors;
        this.decoupled = decoupled;
        this.errors = errors;
        this.encoder = new ExecuteEncoder(tensors, memory, inlineLimit, decoupled ? OpenRequest.FIRST_WINDOW : 0);
    }

    /** Returns whether requests are open that belong to no execution in progress. */
    public boolean awaited() {
        Execution execution = current;
        return !detached.isEmpty() || (execution != null && execution.isDeferred());
    }

    /**
     * Executes a batch. Waits some milliseconds for the model, and then defers the batch. One thread at a time.
     *
     * @param ended runs once when the execution has ended, on any thread
     * @throws BackendException if the whole batch failed
     */
    public void execute(Batch batch, Runnable ended) {
        Execution execution = prepare(batch, ended);
        if (execution == null) {
            return;
        }
        try {
            detachAll(execution);
            start(execution);
            run(execution);
        } catch (RuntimeException | Error e) { // requests with senders would stay open
            abandon(execution, e);
            throw e;
        } finally {
            worker.endExecution();
            if (!execution.isDeferred()) {
                ended.run();
            }
        }
        BackendException failure = execution.isDeferred() ? null : execution.failure();
        if (failure != null) {
            throw failure;
        }
    }

    /** Executes a deferred batch as {@link #execute(Batch, Runnable)}, but does not wait for the model. */
    public void execute(Batch batch, DeferredExecution handle, Runnable ended) {
        Execution execution;
        try {
            execution = prepare(batch, ended);
        } catch (RuntimeException | Error e) {
            handle.fail(failure(e));
            return;
        }
        if (execution == null) {
            handle.complete();
            return;
        }
        execution.defer(handle);
        try {
            detachAll(execution);
            start(execution);
            worker.want();
            failIfEnded(execution);
        } catch (RuntimeException | Error e) {
            if (execution.conclude()) {
                abandon(execution, e);
                execution.setFailure(failure(e));
                execution.finish();
            }
        } finally {
            worker.endExecution();
        }
    }

    /**
     * Encodes an execution. A request fails alone if there is no memory for its inputs.
     *
     * @return the execution, with its frame in the encoder; {@code null} if it has no request: then, and after an
     *     exception, the execution has ended
     */
    private @Nullable Execution prepare(Batch batch, Runnable ended) {
        boolean isPrepared = false;
        try {
            List<InferenceRequest> requests = batch.requests();
            while (!requests.isEmpty()) {
                Execution execution = newExecution(batch, requests, ended);
                try {
                    encoder.encode(execution.id(), execution.first(), requests);
                    isPrepared = true;
                    return execution;
                } catch (InputMemoryException e) {
                    requests = withoutRefused(requests, e);
                }
            }
            return null;
        } finally {
            if (!isPrepared) {
                ended.run();
            }
        }
    }

    private List<InferenceRequest> withoutRefused(List<InferenceRequest> requests, InputMemoryException refusal) {
        refusal.request().fail(refusal.error());
        errors.accept(refusal.getMessage() + " (setting shm-limit-byte-size)", "");
        return requests.stream()
                .filter(request -> !request.equals(refusal.request()))
                .toList();
    }

    private Execution newExecution(Batch batch, List<InferenceRequest> requests, Runnable ended) {
        long first = lastHandle + 1;
        lastHandle += requests.size();
        List<OpenRequest> open = new ArrayList<>(requests.size());
        for (int i = 0; i < requests.size(); i++) {
            open.add(new OpenRequest(first + i, requests.get(i), worker));
        }
        return new Execution(worker.nextId(), first, batch, open, ended);
    }

    private void detachAll(Execution execution) {
        if (decoupled) {
            for (OpenRequest request : execution.requests()) {
                request.detach();
                detached.put(request.handle(), request);
            }
        }
    }

    private void start(Execution execution) {
        List<OpenRequest> open = execution.requests();
        Batch batch = execution.batch();
        FrameWriter frame = encoder.frame();
        current = execution;
        worker.beginExecution();
        open.forEach(OpenRequest::watchCancellation);
        worker.send(frame);
        open.forEach(OpenRequest::onSent);
        if (!execution.isDeferred()) {
            batch.inputsRead();
        }
    }

    private void abandon(Execution execution, Throwable cause) {
        if (execution.equals(current)) {
            current = null;
            // The process may have the requests, and would wait for credit or send results that nobody expects.
            worker.kill("internal error: " + cause);
        }
        failAll(execution, failure(cause));
        // What another thread has left releases its memory: the requests have ended.
        boolean _ = execution.conclude();
        while (!execution.close()) {
            Runnable left = execution.next();
            if (left != null) {
                left.run();
            }
        }
    }

    /** Waits for the end of an execution, or defers it if that takes long: threads of connections may be here. */
    private void run(Execution execution) {
        while (!execution.isReturned() || !execution.close()) {
            Runnable left = execution.next();
            if (left != null) {
                left.run();
                continue;
            }
            worker.receiveUntil(execution::isDue);
            if (!execution.isDue() && execution.defer()) {
                worker.want();
                failIfEnded(execution);
                return;
            }
        }
        current = null;
    }

    /** Fails a deferred execution if the process has ended before: otherwise the thread that receives meets the end. */
    private void failIfEnded(Execution execution) {
        BackendException failure = endFailure;
        if (failure != null) {
            onError(execution, failure);
        }
    }

    /** Receives a frame, and returns whether it belongs to executions; throws {@link FrameException} if it is wrong. */
    public boolean onFrame(FrameReader frame) {
        switch (frame.type()) {
            case FrameType.EXECUTED -> onExecuted(frame);
            case FrameType.FAILED -> onFailed(frame);
            case FrameType.RESPONSE -> onResponse(frame);
            default -> {
                return false;
            }
        }
        return true;
    }

    /** Returns whether the current thread may use the batch; another one reads a copy of the frame, and leaves the rest. */
    private static boolean isMine(@Nullable Execution execution) {
        return execution == null || execution.isMine() || execution.isDeferred();
    }

    /** Does something on the thread of the execution in progress, or here if there is none. */
    private void doOrLeave(@Nullable Execution execution, Runnable action) {
        if (execution == null || execution.isMine() || !execution.leave(action)) {
            action.run();
        } else {
            worker.wake();
        }
    }

    private void onExecuted(FrameReader received) {
        Execution execution = current;
        if (execution == null || execution.id() != received.id() || !execution.setResponded()) {
            throw new FrameException(
                    "id of EXECUTED: " + received.id() + " (expected: that of the execution in progress)");
        }
        FrameReader frame = isMine(execution) ? received : received.copy();
        int count = execution.requests().size();
        if (frame.count() != count) {
            throw new FrameException("count of EXECUTED: " + frame.count() + " (expected: " + count + ")");
        }
        if ((frame.flags() & FAILED) != 0) {
            BackendException error = readError(frame);
            doOrLeave(execution, () -> onError(execution, error));
        } else {
            boolean goesOn = (frame.flags() & GOES_ON) != 0;
            List<RequestResult> results = readResults(frame, count);
            doOrLeave(execution, () -> onResults(execution, results, goesOn));
        }
    }

    private List<RequestResult> readResults(FrameReader frame, int count) {
        List<RequestResult> results = new ArrayList<>(count);
        try {
            for (int i = 0; i < count; i++) {
                results.add(RequestResult.read(frame, tensors.outputs(), memory));
            }
            return results;
        } catch (RuntimeException | Error e) {
            results.forEach(RequestResult::release);
            throw e;
        }
    }

    private void onError(Execution execution, BackendException error) {
        if (!execution.conclude()) {
            return;
        }
        try {
            execution.batch().outputsComputed();
            failAll(execution, error);
        } finally {
            execution.setFailure(error);
            setReturned(execution);
        }
    }

    private void setReturned(Execution execution) {
        if (execution.isDeferred()) {
            current = null;
            execution.finish();
        }
        execution.setReturned();
    }

    private void onResults(Execution execution, List<RequestResult> results, boolean goesOn) {
        if (!execution.conclude()) {
            results.forEach(RequestResult::release);
            return;
        }
        int next = 0;
        try {
            execution.batch().outputsComputed();
            while (next < results.size()) {
                apply(execution.requests().get(next), results.get(next++), goesOn);
            }
        } catch (RuntimeException | Error e) { // nothing else would end the batch
            results.subList(next, results.size()).forEach(RequestResult::release);
            BackendException failure = failure(e);
            failAll(execution, failure);
            execution.setFailure(failure);
            throw e;
        } finally {
            setReturned(execution);
        }
    }

    private void apply(OpenRequest open, RequestResult result, boolean goesOn) {
        BackendException refusal = open.onReturned(result);
        if (refusal != null) {
            errors.accept(String.valueOf(refusal.getMessage()), "");
        }
        if (open.isEnded()) {
            detached.remove(open.handle());
        } else {
            keep(open, goesOn);
        }
    }

    /** Keeps a request that has not ended: its responses come later. */
    private void keep(OpenRequest open, boolean goesOn) {
        if (!open.isDetached()) {
            open.detach();
            addDetached(open);
        }
        if (!goesOn) {
            open.releaseInputs();
        }
    }

    private void onResponse(FrameReader received) {
        long handle = received.id();
        OpenRequest open = detached.get(handle);
        if (open != null) {
            respond(open, RequestResult.read(received, tensors.outputs(), memory));
            return;
        }
        Execution execution = current;
        FrameReader frame = isMine(execution) ? received : received.copy();
        RequestResult result = RequestResult.read(frame, tensors.outputs(), memory);
        doOrLeave(execution, () -> {
            OpenRequest found = find(execution, handle);
            if (found == null) {
                result.release();
            } else {
                // A model that is not decoupled responds by a sender for the first time.
                found.detach();
                respond(found, result);
                if (!found.isEnded()) {
                    addDetached(found);
                }
            }
        });
    }

    /** Adds a request that has not ended, unless the process has: then nothing would end it. */
    private void addDetached(OpenRequest open) {
        detached.put(open.handle(), open);
        BackendException failure = endFailure;
        if (failure != null) {
            open.fail(failure);
            detached.remove(open.handle());
        }
    }

    private static BackendException failure(Throwable cause) {
        return cause instanceof BackendException failure
                ? failure
                : new BackendException(ErrorCode.INTERNAL, "execution failed: " + cause, cause);
    }

    private void respond(OpenRequest open, RequestResult result) {
        open.onResponse(result);
        if (open.isEnded()) {
            detached.remove(open.handle());
        }
    }

    /** Returns a request that has not ended. */
    private @Nullable OpenRequest find(@Nullable Execution execution, long handle) {
        OpenRequest open = execution == null ? null : execution.request(handle);
        if (open == null) {
            open = detached.get(handle);
        }
        return open == null || open.isEnded() ? null : open;
    }

    private void onFailed(FrameReader frame) {
        if (frame.count() * (long) Long.BYTES > frame.remaining()) {
            throw new FrameException("count of FAILED: " + frame.count() + " (expected: as many handles)");
        }
        long[] handles = new long[frame.count()];
        for (int i = 0; i < handles.length; i++) {
            handles[i] = frame.u64("handle");
        }
        BackendException error = readError(frame);
        Execution execution = current;
        doOrLeave(execution, () -> {
            for (long handle : handles) {
                OpenRequest open = find(execution, handle);
                if (open != null) {
                    open.fail(error);
                    detached.remove(handle);
                }
            }
        });
    }

    /**
     * Returns the batch of an execution, for calls that it makes; {@code null} if it has returned, or is not known.
     * Called while frames are received: the batch stays until a later frame.
     */
    public @Nullable Batch running(long id) {
        Execution execution = current;
        return execution != null && execution.id() == id && !execution.isResponded() ? execution.batch() : null;
    }

    /** Reads an error for clients, and logs its text for the log. */
    private BackendException readError(FrameReader frame) {
        int code = (int) Math.min(frame.u32("code"), FrameType.MAX_COUNT);
        String text = frame.text("error");
        String log = frame.text("text for the log");
        errors.accept(text, log);
        return new BackendException(RequestResult.code(code), text);
    }

    private void failAll(Execution execution, BackendException error) {
        for (OpenRequest open : execution.requests()) {
            if (open.isDetached()) {
                open.failFor(error);
                detached.remove(open.handle());
            } else {
                open.end();
            }
        }
    }

    /** Fails all open requests: the process has ended. */
    public void onEnd(WorkerEnd end) {
        BackendException error = unhealthy(end);
        endFailure = error;
        Execution execution = current;
        if (execution != null) {
            doOrLeave(execution, () -> onError(execution, error));
        }
        for (OpenRequest open : detached.values()) {
            open.fail(error);
        }
        detached.clear();
    }

    private BackendException unhealthy(WorkerEnd end) {
        return new BackendException(ErrorCode.UNAVAILABLE, Worker.unhealthy(instance) + ' ' + end.describe());
    }
}
