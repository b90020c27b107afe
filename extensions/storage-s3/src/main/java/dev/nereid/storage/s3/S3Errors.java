package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.exception.SdkException;

/** Maps failures of S3 to error codes. Static functions only. */
final class S3Errors {
    private static final int CHANGED = 412;
    private static final int NOT_FOUND = 404;
    private static final int TIMED_OUT = 408;
    private static final int TOO_MANY = 429;
    private static final int SERVER_ERROR = 500;
    private static final int MAX_CAUSES = 4;

    private S3Errors() {}

    /** Maps a failed request. */
    static BackendException of(S3Location location, SdkException failure) {
        if (failure instanceof AwsServiceException response) {
            return ofResponse(location, response);
        }
        // Such as: no connection, no credentials, a timeout.
        return new BackendException(ErrorCode.UNAVAILABLE, location + ": " + describe(failure), failure);
    }

    /** Maps a failure while an object is read. */
    static BackendException ofStream(S3Location location, IOException failure) {
        return new BackendException(ErrorCode.UNAVAILABLE, location + ": " + describe(failure), failure);
    }

    private static BackendException ofResponse(S3Location location, AwsServiceException response) {
        int status = response.statusCode();
        if (status == CHANGED) {
            return new BackendException(
                    ErrorCode.UNAVAILABLE, location + ": the object changed since it was listed", response);
        }
        ErrorCode code;
        if (status == NOT_FOUND) {
            code = ErrorCode.NOT_FOUND;
        } else if (status == TIMED_OUT || status == TOO_MANY || status >= SERVER_ERROR) {
            code = ErrorCode.UNAVAILABLE;
        } else {
            code = ErrorCode.INVALID_ARGUMENT;
        }
        AwsErrorDetails details = response.awsErrorDetails();
        String reason = details == null ? "no details" : details.errorCode() + ": " + details.errorMessage();
        return new BackendException(code, location + ": status " + status + ", " + oneLine(reason), response);
    }

    private static String describe(Throwable failure) {
        StringBuilder text = new StringBuilder(String.valueOf(failure.getMessage()));
        Throwable cause = failure.getCause();
        for (int depth = 0; cause != null && depth < MAX_CAUSES; depth++) {
            text.append("; caused by ").append(cause);
            cause = cause.getCause();
        }
        return oneLine(text.toString());
    }

    private static String oneLine(String text) {
        return text.replaceAll("\\s+", " ").strip();
    }
}
