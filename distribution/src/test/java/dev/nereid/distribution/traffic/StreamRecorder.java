package dev.nereid.distribution.traffic;

import inference.ModelStreamInferResponse;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.BlockingQueue;

/**
 * Passes the messages and the end of a stream to a queue. Immutable.
 *
 * @param received gets each message; at the end the failure, or a text
 */
record StreamRecorder(BlockingQueue<Object> received) implements StreamObserver<ModelStreamInferResponse> {
    @Override
    public void onNext(ModelStreamInferResponse message) {
        received.add(message);
    }

    @Override
    public void onError(Throwable failure) {
        received.add(failure);
    }

    @Override
    public void onCompleted() {
        received.add("completed");
    }
}
