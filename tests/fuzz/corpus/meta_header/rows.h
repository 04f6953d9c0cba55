/* c */
#pragma once
namespace a { struct F; // x
struct Info
{
    int mDataTypeQ;
    int mDataTypeKv;
    int mDataTypeK;
    int mDataTypeV;
    int mDataTypeQkReinterpret;
    int mDataTypeO;
    int mTileSizeQ;
    int mTileSizeKv;
    int mStepQ;
    int mStepKv;
    int mHeadDimPerCtaV;
    int mHeadDimQk;
    int mHeadDimV;
    int mSM;
    int mCubin;
    int mCubinSize;
    int mFuncName;
    int mSharedMemBytes;
    int mThreadsPerCTA;
    int mQkvLayout;
    int mNumTokensPerPage;
    int mMaskType;
    int mKernelType;
    int mTileScheduler;
    int mMultiCtasKvMode;
    int mGroupsHeadsQ;
    int mSparseAttn;
    int mReserved1;
    int mFp16Softmax;
    int sha256;
};
static const Info s[] = {
{ DATA_TYPE_E4M3, DATA_TYPE_UNKNOWN, DATA_TYPE_INT8, X::DATA_TYPE_E4M3, DATA_TYPE_BF16, DATA_TYPE_E2M1, 64, 0x80, 16u, 128, 256, 576, 512, kSM_100f, nullptr, 0, "fmhaSm100fKernel_QkInt8VE4m3OE2m1HQk576HV512HVPerCta256PagedKvCausalP32MultiCtasKvCgaVarSeqSkipsSoftmaxQ64Kv128Static2CtaKeepsAbForGen", 4096, 384, 2, 32, 1, 3, 0, 3, true, 2, false, true, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
{ DATA_TYPE_E4M3, DATA_TYPE_UNKNOWN, DATA_TYPE_INT8, X::DATA_TYPE_E4M3, DATA_TYPE_BF16, DATA_TYPE_E2M1, 64, 0x80, 16u, 128, 256, 576, 512, 10100, nullptr, 0, "fmhaSm100fKernel_QkInt8VE4m3OE2m1HQk576HV512HVPerCta256PagedKvCausalP32MultiCtasKvCgaVarSeqSkipsSoftmaxQ64Kv128Static2CtaKeepsAbForGen", 4096, 384, 2, 32, 1, 3, 0, 3, true, 2, false, true, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
};
}
