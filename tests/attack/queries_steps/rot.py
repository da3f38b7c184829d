import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/rot'; w=f'/tmp/attackq/rotw{sys.argv[1]}'; shutil.rmtree(w,ignore_errors=True); os.makedirs(w)
rng=random.Random(int(sys.argv[1])); end=time.time()+float(sys.argv[2])
QS=json.load(open('/tmp/attackq/qs.json')); exp=json.load(open(d+'/exp.json'))
qdirs=[x for x in os.listdir(d+'/gold.d/views') if 'query' in x]
files=[]
for q in qdirs:
    for r,_,fs in os.walk(d+'/gold.d/views/'+q):
        for f in fs: files.append(os.path.relpath(r+'/'+f,d+'/gold.d'))
if sys.argv[1]=='1': print(len(files)); [print(f,os.path.getsize(d+'/gold.d/'+f)) for f in sorted(files)[:80]]
def norm(e):
    e=dict(e); e.pop('meta',None)
    if 'results' in e: e['results']=sorted(json.dumps(x,sort_keys=True) for x in e['results']); e.pop('next_cursor',None)
    return e
from collections import Counter
tally=Counter()
import hashlib
H=hashlib.sha256(open(d+'/gold','rb').read()).hexdigest()
order=[f for f in files if 'lock' not in f]; rng.shuffle(order); k=0
while time.time()<end:
    f=order[k%len(order)] if rng.random()<.85 else next(x for x in files if x.endswith('data.mdb')); k+=1
    shutil.rmtree(w+'/x.svcdb.d',ignore_errors=True); subprocess.run(['cp','-a',d+'/gold.d',w+'/x.svcdb.d']); shutil.copy(d+'/gold',w+'/x.svcdb')
    p=w+'/x.svcdb.d/'+f; n=os.path.getsize(p); 
    how=rng.choice(['flip','flip','flip','zero','trunc','del','swap','flips'])
    running=rng.random()<.3
    desc=(how,f,n,'running' if running else 'stopped')
    def damage():
        nonlocal_=None
        if how=='del': os.unlink(p); return ''
        if n==0: open(p,'wb').write(b'garbage'); return ''
        # copy to break hard links
        data=bytearray(open(p,'rb').read())
        if how in('flip','flips'):
            for _ in range(1 if how=='flip' else 200):
                i=rng.randrange(n) ; data[i]^=1<<rng.randrange(8)
            x=i
        elif how=='zero':
            x=i=rng.randrange(n); data[i:i+4096]=bytes(len(data[i:i+4096]))
        elif how=='trunc': x=rng.randrange(n); data=data[:x]
        else:
            same=[g for g in order if os.path.basename(g).split('.')[-1]==os.path.basename(f).split('.')[-1] and g!=f]
            if not same: return 'noswap'
            x=rng.choice(same); data=open(d+'/gold.d/'+x,'rb').read()
        if running and how!='trunc':
            with open(p,'r+b') as h_: h_.write(data); h_.truncate(len(data))
        else: open(p,'wb').write(data)
        return x
    if not running: x=damage()
    try: s=S(w+'/x.svcdb')
    except SystemExit as e: print('NOSTART',desc,e); tally['nostart']+=1; continue
    if running:
        if rng.random()<.5: s.query(*QS[0][:2],**QS[0][2])
        x=damage()
    def ask():
        out=[]
        for (pa,wh,k_),e in zip(QS,exp):
            try: st,r=s.query(pa,wh,**k_)
            except Exception as ex: out.append(('exc',repr(ex)[:100])); continue
            if st==200: out.append('ok' if norm(r)==norm(e) else ('meta' if 'meta' in r else 'WRONG',str(r)[:150],str(e)[:150]))
            else: out.append((st,str(r.get('error') if isinstance(r,dict) else r)[:150]))
        return out
    a=ask(); bad=[(i,o) for i,o in enumerate(a) if o!='ok']
    if bad:
        kinds=Counter(str(o[0]) for _,o in bad)
        t=time.time(); heal=None
        while time.time()-t<20:
            time.sleep(1); b=ask(); bad2=[(i,o) for i,o in enumerate(b) if o!='ok']
            if not bad2: heal=time.time()-t; break
        wrong=[(i,o) for i,o in bad if o[0]=='WRONG']
        tag='WRONGHEALED' if wrong and heal else 'WRONGSTAYS' if wrong else 'healed' if heal else 'ERRSTAYS'
        tally[tag]+=1
        if tag!='healed':
            st=s.q('GET','/query/status'); print(tag,desc,x,dict(kinds),bad[:3],'after20s',bad2[:3] if not heal else '')
            print('   status', {k_:v for k_,v in st[1].items() if k_ in('jobs','failures','waiting','documents','unflushed')} if st[0]==200 else st, 'logtail', open(w+'/x.svcdb.log').read()[-250:].replace('\n',' | '))
            print('   cli index', cli('index','status','-D',s.base,'/').stdout[:0], 'status:', cli('status','-D',w+'/x.svcdb').stdout[-300:].replace('\n',' | '))
        if '500' in kinds: print('   500:',desc,x,bad[:2], open(w+'/x.svcdb.log').read()[-400:].replace('\n',' | '))
    else: tally['ok']+=1
    s.stop()
    if hashlib.sha256(open(w+'/x.svcdb','rb').read()).hexdigest()!=H: print('LOG CHANGED',desc, os.path.getsize(w+'/x.svcdb'),os.path.getsize(d+'/gold'))
    open(w+'/x.svcdb.log','w').close()
    sys.stdout.flush()
print('done',tally,time.strftime('%T'))
